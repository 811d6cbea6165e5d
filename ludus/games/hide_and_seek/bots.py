"""Scripted players, bound to what their body sees."""
