"""The kinds of tallies by name, one line each."""

from candide.tables import Table
from candide.tally.base import Tally

KINDS: Table[Tally] = Table(
    "candide.tally",
    {
        "cells": "Cells",
        "comoments": "CoMoments",
        "levels": "Levels",
        "moments": "Moments",
        "sums": "Sums",
        "terms": "Terms",
    },
)
attribute = KINDS.attribute
