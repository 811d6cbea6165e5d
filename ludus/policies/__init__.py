"""Networks that act: encoders, memory, action distributions, normalisers."""
