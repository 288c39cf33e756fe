"""Validation: folds, cross-validation, held-out estimates and comparisons."""
