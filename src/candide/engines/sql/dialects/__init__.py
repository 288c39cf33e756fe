"""Dialects of SQL, one a file: what each database spells in its own way."""
