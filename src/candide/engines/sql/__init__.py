"""SQL: what each tally kind asks of a database, in any dialect."""
