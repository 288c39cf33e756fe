"""Model: plan, census, settings, and the model they make."""
