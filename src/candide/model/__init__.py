"""Model: plan, counts, settings, and the fitted model."""
