"""Training: loss, schedule, devices, checkpoints and the run that ties them together."""
