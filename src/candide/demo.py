"""A made-up table of garden herbs, drawn from counts: it needs no data and no network."""

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
    """Counts of three herbs, 100 plants each."""
    soil, scent = Labels(("chalk", "clay", "sand")), Labels(("no", "yes"))
    parts = (
        PlanPart(Gaussian(), ("height_cm", "leaf_mm")),
        PlanPart(Poisson(), ("flowers",)),
        PlanPart(Categorical(prior="dirichlet"), ("soil", "scented")).with_labels((soil, scent)),
    )
    n = np.full((3, 2), 100.0)
    mean = np.array([[55.0, 38.0], [48.0, 52.0], [22.0, 9.0]])
    variance = np.array([[64.0, 49.0], [81.0, 90.0], [36.0, 6.0]])
    levels = np.array([[55.0, 10, 35, 4, 96], [30, 45, 25, 22, 78], [40, 5, 55, 12, 88]])
    flowers = Sums(n[:, :1], np.array([[1200.0], [700.0], [1500.0]]), np.zeros((3, 1)))
    tallies = Moments(n, mean, variance * 100), flowers, LevelTally(levels, np.array([0, 3, 5]))
    columns = tuple(name for part in parts for name in part.columns)
    return ModelCounts(Plan(columns, parts), Labels(("lavender", "sage", "thyme")), np.full(3, 100.0), tallies, 300)


def garden_rows(n: int, seed: int, missing: float = 0.05) -> tuple[dict[str, Any], np.ndarray]:
    """Draw plants from the garden; some values are missing."""
    counts, rng = garden(), np.random.default_rng(seed)
    blocks, y = estimate_model(counts).sample(n, rng)
    table: dict[str, Any] = {}
    for part, block in zip(counts.plan.parts, blocks, strict=True):
        for j, name in enumerate(part.columns):
            column = part.encodings[j].decode(block[:, j])
            column = np.round(column, 1) if column.dtype.kind == "f" else column.astype(object)
            column[rng.random(n) < missing] = None  # in numbers NaN
            table[str(name)] = column
    return table, counts.labels.array[y]


@dataclass(frozen=True)
class Demo:
    """The fit of the garden, and its scores on held-out plants."""

    fit_result: FitResult
    scores: Scores


def run_demo(n: int = 20_000, seed: int = 0) -> Demo:
    """Draw a table, fit three quarters of it, evaluate on the rest."""
    table, y = garden_rows(n, seed)
    table["herb"], cut = y, n * 3 // 4
    train, test = ({name: column[rows] for name, column in table.items()} for rows in (slice(cut), slice(cut, n)))
    fit_result = fit_model(train, "herb", events={"flowers": "poisson"})
    return Demo(fit_result, evaluate(fit_result.fitted, test))
