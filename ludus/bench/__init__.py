"""How fast things are, measured the way users run them."""
