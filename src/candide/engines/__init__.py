"""Engines: who counts. An engine implements tally kinds, never event models."""
