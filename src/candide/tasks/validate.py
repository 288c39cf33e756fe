"""Cross-validation that equals refitting, without refitting: count the folds apart in one pass, score in another.

Every fold has its part of each class: rows are dealt out class by class. The training census of a fold is the sum of
the others, without the classes and levels that only the fold itself holds: its model is the one fitted to its training
rows, up to rounding. What is learned once, from the first rows of the whole source and never from labels, is the kind
of each column, and so its event model.

>>> rows = {"size": [float(i % 10) for i in range(200)], "kind": ["a" if i % 10 < 5 else "b" for i in range(200)]}
>>> cross_validate(rows, "kind", folds=10).total.accuracy
1.0
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import wording
from candide.encode import Move
from candide.engines.base import Folds, Rows, Watch, open_source, silent
from candide.engines.batch import blocks, pieces
from candide.engines.reading import Reading
from candide.errors import InputError
from candide.kernels import threads
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.model.plan import Part, Plan
from candide.model.settings import DEFAULT_MODEL, Settings, usual
from candide.rows.blocks import Block, Floats, rows_of
from candide.rows.labels import Labels
from candide.rows.remarks import Remark
from candide.tasks.learn import Learned, as_read, checked, told
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

    @cached_property
    def total(self) -> Scores:
        """All rows, each scored by the model that had not seen it."""
        return reduce(add, self.folds)

    def __str__(self) -> str:
        title = f"{len(self.folds)} folds of {self.learned.fitted.census.n_rows:,} rows"
        lines, of_all = [f"{title}  value  fold sd"], self.total.metrics()
        lines += [f"{name:{len(title)}} {of_all[name]:.4f}   {sd:.4f}" for name, (_, sd) in spread(self.folds).items()]
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
    model: str = DEFAULT_MODEL,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Validation:
    """Cross-validate on a source. ``folds`` and ``seed`` say how rows are divided; the rest is as in ``learn``."""
    from candide.engines.count import count
    from candide.engines.prepare import prepare

    if folds < 2:
        raise InputError(f"folds: {folds}; cross-validation needs at least 2", value=folds)
    settings = settings or usual(model)
    if model != "naive":
        remedy = "pass model='naive', or score a model on other rows"
        raise InputError(f"model {model!r} is not cross-validated", value=model, remedy=remedy)
    with open_source(data, reading) as source:
        source.materialise()  # a row is counted in the fold in which it is scored
        prepared = prepare(source, target, events, drop, weight)
        rows = Rows(source, target, weight, Folds(folds, seed, target))
        with watch(source, "counting"):
            counted = count(rows, prepared)
        whole = checked(reduce(add, counted.censuses), target)
        if whole.n_rows < folds:
            raise InputError(f"{wording.plural(whole.n_rows)} cannot be divided into {folds} folds", value=folds)
        if settings.names_classes:
            counted = replace(counted, censuses=[census.declare_classes() for census in counted.censuses])
        trained = [Fitted(census, settings) for census in _others(counted.censuses)]  # each chooses its own columns
        with watch(source, "scoring"):
            scores = _score_folds(rows, whole, trained)
        read = as_read(source, prepared, reading)
    rare = _rare(target, counted.censuses)
    remarks = [one for one in told(whole, target, prepared, counted) if not (rare and one.code == "few-rows")] + rare
    return Validation(scores, Learned(Fitted(whole, settings, target, **read), prepared.columns, remarks))


def _others(parts: list[Census]) -> Iterator[Census]:
    """For every fold the sum of the other folds: what only the fold itself holds is unknown there."""
    for fold in range(len(parts)):
        yield reduce(add, parts[:fold] + parts[fold + 1 :]).pruned()


def _rare(target: str, folds: Sequence[Census]) -> list[Remark]:
    """A remark on classes that have fewer rows than there are folds."""
    held = Counter(label for fold in folds for label, w in zip(fold.labels.values, fold.class_weight, strict=True) if w)
    few = sorted((label for label, n in held.items() if n < len(folds)), key=lambda label: held[label])
    if not few:
        return []
    if len(few) == 1:
        what = f"class {few[0]!r} has {wording.plural(held[few[0]])}, fewer than the {len(folds)} folds"
    else:
        what = f"classes {wording.listing(few, 3)} have fewer rows than the {len(folds)} folds"
    text = f"{what}: what the scores say of so few rows is chance"
    return [Remark("class-rare", text, target, "leave such rows out, or unite the class with another")]


def _score_folds(rows: Rows, whole: Census, trained: list[Fitted]) -> list[Scores]:
    used = {name for fitted in trained for name in fitted.plan.columns}
    plan = whole.plan if len(used) == len(whole.plan.columns) else whole.select(used).plan
    keep = [rows.target, *([rows.weight] if rows.weight else [])]
    scan = rows.source.engine.score(rows.source, plan, keep, folds=rows.folds)

    models = [_Fold(plan, whole.labels, fitted) for fitted in trained]

    def score(batch: Any) -> list[tuple[int, Scores]]:
        truth, out = Truth.of(whole.labels, batch, rows.weight), []
        known, w = truth.known, truth.weight
        for f, some, log_posterior in _by_fold(plan, models, batch):
            if not known[some].all():
                some, log_posterior = some[known[some]], log_posterior[known[some]]
            if len(some):
                out.append((f, Scores.of(log_posterior, truth.codes[some], w if w is None else w[some])))
        return out

    scores: list[Scores | None] = [None] * len(trained)
    for more in threads.ahead(score, pieces(scan.batches, len(whole.labels))):
        for f, part in more:
            before = scores[f]
            scores[f] = part if before is None else before + part
    return [s for s in scores if s is not None]


def _by_fold(plan: Plan, models: Sequence["_Fold"], batch: Any) -> Iterator[tuple[int, NDArray, Floats]]:
    """Fold by fold its rows and their log p(class | x) under its model; the rows are encoded once for all of them."""
    fold = batch.column("fold").to_numpy()
    order = np.argsort(fold, kind="stable")  # by counting, where integers are narrow
    bounds = np.searchsorted(fold[order], np.arange(len(models) + 1))
    encoded = blocks(plan, batch.take(order))
    for f, (a, b) in enumerate(pairwise(bounds.tolist())):
        if a < b:
            yield f, order[a:b], models[f].log_posterior([rows_of(block, slice(a, b)) for block in encoded])


class _Fold:
    """The model of a fold for rows encoded by the plan of all: it may know fewer levels, classes and columns."""

    def __init__(self, plan: Plan, labels: Labels, fitted: Fitted):
        self.fitted, self.n_classes = fitted, len(labels)
        self.classes = np.array([labels.index[label] for label in fitted.labels.values], np.intp)
        used = set(fitted.plan.columns)
        wider = [(i, part) for i, part in enumerate(plan.parts) if not used.isdisjoint(part.columns)]
        self.parts = [(i, _place(part, own), _reader(part, own)) for i, part, own in _within(wider, fitted.plan.parts)]

    def log_posterior(self, encoded: Sequence[Block]) -> Floats:
        """(row, class) log p(class | x), of the classes of all rows.

        A class that this model has not met has the share of one row more, whatever x is: a row of it is a surprise,
        not an impossibility.
        """
        own = [read(_narrow(encoded[i], at)) for i, at, read in self.parts]
        found, _ = scored_blocks(self.fitted.plan, self.fitted.model, own)
        if len(self.classes) == self.n_classes:
            return found
        n, unmet = float(self.fitted.census.class_weight.sum()), self.n_classes - len(self.classes)
        out = np.full((len(found), self.n_classes), -np.log(n + unmet))
        out[:, self.classes] = found - np.log1p(unmet / n)
        return out


def _within(wider: Sequence[tuple[int, Part]], own: Sequence[Part]) -> Iterator[tuple[int, Part, Part]]:
    """Every part of a fold's model with that of all rows which has its columns: the counts may have divided one."""
    rest, used = iter(own), {name for part in own for name in part.columns}
    for i, part in wider:
        left = used & set(part.columns)
        while left:
            mine = next(rest)
            left -= set(mine.columns)
            yield i, part, mine


def _reader(part: Part, own: Part) -> Callable[[Block], Block]:
    """How a part reads the block of the part that has its columns: codes as its own codes, or as the numbers meant."""
    if part.holds == own.holds:
        return partial(_recoded, moves=_moves(part, own))
    wide = dict(zip(part.columns, part.levels, strict=True))
    values = [np.array([*wide[name].values, np.nan], np.float64) for name in own.columns]  # absent: the last, -1

    def read(codes: Any) -> Block:
        return np.column_stack([found[codes[:, j]] for j, found in enumerate(values)])

    return read


def _place(part: Part, own: Part) -> NDArray[np.intp] | None:
    """Where the columns of a part with some of them lie; None where it has all."""
    at = {name: j for j, name in enumerate(part.columns)}
    return None if part.columns == own.columns else np.array([at[name] for name in own.columns], np.intp)


def _moves(part: Part, own: Part) -> list[tuple[int, Move]]:
    """The columns of which some levels are unknown, and where their codes go."""
    wide = dict(zip(part.columns, part.encodings, strict=True))
    pairs = [(wide[name], mine) for name, mine in zip(own.columns, own.encodings, strict=True)]
    return [
        (j, Move(mine.read(every.decode(np.arange(every.n_levels or 0))), mine.n_levels))
        for j, (every, mine) in enumerate(pairs)
        if every.n_levels != mine.n_levels
    ]


def _narrow(block: Any, columns: NDArray[np.intp] | None) -> Block:
    return block if columns is None else np.asfortranarray(block[:, columns])


def _recoded(block: Any, moves: Sequence[tuple[int, Move]]) -> Block:
    out = block.copy(order="F") if moves else block
    for j, move in moves:
        out[:, j] = move.apply(out[:, j])
    return out
