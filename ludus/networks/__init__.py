"""Torch modules: encoders, memory, heads, normalisers, and policies made of them."""
