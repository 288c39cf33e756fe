"""Spark: rows that lie on a cluster are counted and scored there."""
