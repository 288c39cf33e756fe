"""SQL dialects: one class for each database."""
