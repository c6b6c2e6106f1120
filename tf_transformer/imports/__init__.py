"""Models of other programs as runs."""
