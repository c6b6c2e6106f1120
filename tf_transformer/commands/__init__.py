"""The commands train, evaluate, translate and export."""
