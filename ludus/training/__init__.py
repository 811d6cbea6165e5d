"""Training: the loop, the run folder, checkpoints, metrics, evaluation, devices."""
