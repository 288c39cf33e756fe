"""Fit a model to a source."""
