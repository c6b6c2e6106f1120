"""The plain and the tuned form of each equation, and the thresholds between two ways to compute."""
