"""Cross-validation without refitting: count the folds apart in one pass, score them in another.

The training census of a fold is the sum of the others.

>>> rows = {"size": [float(i % 10) for i in range(200)], "kind": ["a" if i % 10 < 5 else "b" for i in range(200)]}
>>> cross_validate(rows, "kind", folds=10).total.accuracy
1.0
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.engines.base import Folds, Rows, Watch, open_source, silent
from candide.engines.batch import blocks
from candide.engines.reading import Reading
from candide.errors import InputError
from candide.kernels import threads
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.model.plan import Plan
from candide.model.settings import Settings
from candide.rows.blocks import Block, Floats, rows_of
from candide.tasks.learn import Learned, checked, unlabelled
from candide.tasks.scores import Scores, spread
from candide.tasks.scoring import Truth, scored_blocks


@dataclass(frozen=True)
class Validation:
    """Cross-validation: the scores of each fold on rows it was not trained on, and the model of all rows.

    >>> from candide.demo import rows
    >>> plants, herb = rows(300, seed=0)
    >>> validation = cross_validate({**plants, "herb": herb}, "herb", folds=5)
    >>> len(validation.folds), validation.total.n
    (5, 300.0)
    """

    folds: list[Scores]
    learned: Learned

    @property
    def total(self) -> Scores:
        """All rows, each scored by the model that had not seen it."""
        return reduce(add, self.folds)

    def __str__(self) -> str:
        title = f"{len(self.folds)} folds of {self.learned.fitted.census.n_rows:,} rows"
        lines = [f"{title}   mean      sd"]
        lines += [f"{name:{len(title)}} {mean:.4f}  {sd:.4f}" for name, (mean, sd) in spread(self.folds).items()]
        return "\n".join(lines)

    __repr__ = __str__


def cross_validate(
    data: Any,
    target: str,
    *,
    folds: int = 10,
    seed: int = 0,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    settings: Settings | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Validation:
    """Cross-validate on a source. ``folds`` and ``seed`` say how rows are divided; the rest is as in ``learn``."""
    from candide.engines.count import count
    from candide.engines.prepare import prepare

    if folds < 2:
        raise InputError(f"folds: {folds}; cross-validation needs at least 2", value=folds)
    settings = settings or Settings()
    with open_source(data, reading) as source:
        source.materialise()  # a row is counted in the fold in which it is scored
        prepared = prepare(source, target, events, drop, weight)
        rows = Rows(source, target, weight, Folds(folds, seed))
        with watch(source, "counting"):
            counted = count(rows, prepared)
        whole = checked(reduce(add, counted.censuses), target)
        if whole.n_rows < folds:
            raise InputError(f"{whole.n_rows} rows cannot be divided into {folds} folds", value=folds)
        trained = [Fitted(census, settings) for census in _others(counted.censuses)]  # each chooses its own columns
        with watch(source, "scoring"):
            scores = _score_folds(rows, whole, trained)
    remarks = prepared.remarks + unlabelled(target, counted)
    return Validation(scores, Learned(Fitted(whole, settings, target), prepared.columns, remarks))


def _others(parts: list[Census]) -> Iterator[Census]:
    """For every fold the sum of the other folds."""
    for fold in range(len(parts)):
        yield reduce(add, parts[:fold] + parts[fold + 1 :])


def _score_folds(rows: Rows, whole: Census, trained: list[Fitted]) -> list[Scores]:
    used = {name for fitted in trained for name in fitted.plan.columns}
    plan = whole.plan if len(used) == len(whole.plan.columns) else whole.select(used).plan
    keep = [rows.target, *([rows.weight] if rows.weight else [])]
    scan = rows.source.engine.score(rows.source, plan, keep, folds=rows.folds)

    def score(batch: Any) -> list[tuple[int, Scores]]:
        truth, out = Truth.of(whole.labels, batch, rows.weight), []
        known, w = truth.known, truth.weight
        for f, some, log_posterior in _by_fold(plan, trained, batch):
            if not known[some].all():
                some, log_posterior = some[known[some]], log_posterior[known[some]]
            if len(some):
                out.append((f, Scores.of(log_posterior, truth.codes[some], w if w is None else w[some])))
        return out

    scores: list[Scores | None] = [None] * len(trained)
    for more in threads.ahead(score, scan.batches):
        for f, part in more:
            before = scores[f]
            scores[f] = part if before is None else before + part
    return [s for s in scores if s is not None]


def _by_fold(plan: Plan, trained: Sequence[Fitted], batch: Any) -> Iterator[tuple[int, NDArray, Floats]]:
    """Fold by fold its rows and their log p(class | x) under its model; the rows are encoded once for all of them.

    The model of a fold may use only some of the plan's columns: those of its own plan.
    """
    fold = batch.column("fold").to_numpy()
    order = np.argsort(fold.astype(np.uint16), kind="stable")  # by counting, where integers are this narrow
    bounds = np.searchsorted(fold[order], np.arange(len(trained) + 1))
    encoded = blocks(plan, batch.take(order))
    for f, (a, b) in enumerate(pairwise(bounds.tolist())):
        if a < b:
            chosen = trained[f].plan
            some = [_narrow(rows_of(encoded[i], slice(a, b)), at) for i, at in _places(plan, chosen)]
            yield f, order[a:b], scored_blocks(chosen, trained[f].model, some)[0]


def _places(plan: Plan, chosen: Plan) -> list[tuple[int, NDArray[np.intp] | None]]:
    """Where the blocks of a plan of some of the columns lie in those of the plan; None for all columns of a block."""
    used = set(chosen.columns)
    wider = [(i, part.columns) for i, part in enumerate(plan.parts) if not used.isdisjoint(part.columns)]
    out: list[tuple[int, NDArray[np.intp] | None]] = []
    for (i, columns), part in zip(wider, chosen.parts, strict=True):
        at = {name: j for j, name in enumerate(columns)}
        out.append((i, None if part.columns == columns else np.array([at[name] for name in part.columns], np.intp)))
    return out


def _narrow(block: Any, columns: NDArray[np.intp] | None) -> Block:
    return block if columns is None else np.asfortranarray(block[:, columns])
