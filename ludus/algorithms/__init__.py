"""Learning algorithms and what they share."""
