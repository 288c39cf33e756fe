"""DuckDB: files, queries and tables, counted by one aggregate query."""
