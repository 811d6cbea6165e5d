"""Learning algorithms, one file each, and the mathematics they share."""
