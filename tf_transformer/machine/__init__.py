"""The computer: limits, heap, threads, GPUs, programs, thresholds, and the settings of Keras."""
