"""Conjugate: how a prior and a tally make a law."""
