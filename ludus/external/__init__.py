"""Envs of other libraries and of other programs, as batches to train on."""
