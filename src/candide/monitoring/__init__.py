"""Monitoring: data checks, drift, and differences between models."""
