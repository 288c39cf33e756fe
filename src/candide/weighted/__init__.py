"""The weighted model: sample, term selection, weights and fit."""
