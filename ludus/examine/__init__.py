"""Produces evidence about games, policies and the learning code itself."""
