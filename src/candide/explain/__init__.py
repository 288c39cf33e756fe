"""Explain: what a model knows, and why it decides as it does."""
