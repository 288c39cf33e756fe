"""A model as one SELECT, in any of ten dialects of SQL."""
