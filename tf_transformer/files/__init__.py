"""Files: reads lines of text, writes whole outputs, and loses none."""
