"""PostgreSQL: tables and queries of a server, counted there, and read through ADBC."""
