"""Adapters between Ludus and other conventions."""
