"""Move modules and rename symbols, members and parameters across the whole repository."""
