"""Rows: what came in. Labels, kinds of columns, tables, documents."""
