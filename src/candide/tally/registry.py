"""The kinds of tallies by name, one line each."""

from candide.registry import Registry
from candide.tally.base import Tally

TALLIES: Registry[Tally] = Registry(
    "candide.tally",
    {
        "cells": "CellTally",
        "comoments": "CoMoments",
        "levels": "LevelTally",
        "moments": "Moments",
        "sums": "Sums",
        "token_counts": "TokenCounts",
    },
)
get_class = TALLIES.get_class
