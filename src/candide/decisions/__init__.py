"""Decisions: thresholds, costs and class priors that shift."""
