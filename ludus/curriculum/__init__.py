"""What changes during training: schedules of single values, stages, and tasks chosen by learning
progress."""
