"""Files: reads lines of text, and writes complete outputs without losing existing files."""
