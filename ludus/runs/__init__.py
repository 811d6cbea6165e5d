"""The run folder: configuration, logs, checkpoints, snapshots, weights; loading what was trained
again."""
