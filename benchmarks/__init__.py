"""Benchmarks: a program that prints ratios against peers measured in the same run, and the limit."""
