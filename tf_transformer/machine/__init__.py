"""The computer: heap, threads, programs, measured thresholds, and the settings of Keras."""
