"""Opponents in training: who sits on the other side, snapshots of earlier policies, ratings."""
