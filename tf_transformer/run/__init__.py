"""The folder of a run: its files, its configuration, its weights."""
