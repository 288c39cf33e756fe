"""Metrics: scores, ranks, curves, calibration and their intervals."""
