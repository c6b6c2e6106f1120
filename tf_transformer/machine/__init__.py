"""The computer: its heap, threads, thresholds, and the settings of Keras."""
