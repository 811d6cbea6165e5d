"""Ludus trains agents to play games against each other, fast, and says why when they do not learn."""

__version__ = "0.1.0"
