"""A small made-up world, kept as a census: the herbs of a garden, by height, flowers, soil and scent.

The demo samples its rows from this model, so it needs no data and no network.

>>> garden().labels.values
('lavender', 'sage', 'thyme')
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from candide.data.labels import Labels
from candide.events import Categorical, Gaussian, Poisson
from candide.fit_source import fit_model
from candide.metrics.scores import Scores
from candide.model.counts import ModelCounts
from candide.model.model import estimate_model
from candide.model.plan import Plan, PlanPart
from candide.tally import LevelTally, Moments, Sums
from candide.validation.evaluation import evaluate
from candide.validation.held_out import FitResult


def garden() -> ModelCounts:
    """Three herbs, a hundred plants counted of each."""
    soil, scent = Labels(("chalk", "clay", "sand")), Labels(("no", "yes"))
    parts = (
        PlanPart(Gaussian(), ("height_cm", "leaf_mm")),
        PlanPart(Poisson(), ("flowers",)),
        PlanPart(Categorical(prior="dirichlet"), ("soil", "scented")).with_labels((soil, scent)),
    )
    hundred = np.full((3, 2), 100.0)
    tallies = (
        Moments(
            hundred,
            np.array([[55.0, 38.0], [48.0, 52.0], [22.0, 9.0]]),
            np.array([[64.0, 49.0], [81.0, 90.0], [36.0, 6.0]]) * 100,
        ),
        Sums(hundred[:, :1], np.array([[1200.0], [700.0], [1500.0]]), np.zeros((3, 1))),
        LevelTally(np.array([[55.0, 10, 35, 4, 96], [30, 45, 25, 22, 78], [40, 5, 55, 12, 88]]), np.array([0, 3, 5])),
    )
    columns = tuple(name for part in parts for name in part.columns)
    return ModelCounts(Plan(columns, parts), Labels(("lavender", "sage", "thyme")), np.full(3, 100.0), tallies, 300)


def garden_rows(n: int, seed: int, missing: float = 0.05) -> tuple[dict[str, Any], np.ndarray]:
    """Draw plants from the garden, and lose some of the values."""
    census, rng = garden(), np.random.default_rng(seed)
    blocks, y = estimate_model(census).sample(n, rng)
    table: dict[str, Any] = {}
    for part, block in zip(census.plan.parts, blocks, strict=True):
        for j, name in enumerate(part.columns):
            column = part.encodings[j].decode(block[:, j])
            column = np.round(column, 1) if column.dtype.kind == "f" else column.astype(object)
            column[rng.random(n) < missing] = None  # in numbers NaN
            table[str(name)] = column
    return table, census.labels.array[y]


@dataclass(frozen=True)
class Demo:
    """What was learned of the garden, and how it does on plants it has not seen."""

    fit_result: FitResult
    scores: Scores


def run_demo(n: int = 20_000, seed: int = 0) -> Demo:
    """Sample a table, fit on three quarters of it, evaluate on the rest."""
    table, y = garden_rows(n, seed)
    table["herb"] = y
    cut = n * 3 // 4
    train, test = ({k: v[s] for k, v in table.items()} for s in (slice(0, cut), slice(cut, n)))
    learned = fit_model(train, "herb", events={"flowers": "poisson"})
    return Demo(learned, evaluate(learned.fitted, test))
