"""What changes during training: schedules."""
