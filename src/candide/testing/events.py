"""Checks of an event model.

Chunks of rows add up, contributions add up to the score, a missing value adds nothing, a weight is so many copies, a
density has mass one, fitting undoes sampling, evidence is the product of predictions one step ahead.
"""

import pickle
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Floats
from candide.data.documents import Documents
from candide.data.labels import Labels
from candide.data.table import Table
from candide.distributions import Distribution
from candide.engines import arrays
from candide.errors import InputError
from candide.events import ESTIMATES, EVENTS, EventModel, resolve_event
from candide.events.base import Support
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.priors import Prior
from candide.testing.checks import (
    CategoryColumns,
    CustomColumns,
    DocumentColumns,
    Example,
    NumberColumns,
    check_close,
    check_same_state,
    examples,
    run_checks,
    to_sparse,
)

_GRID_POINTS = 40_001  # points at which a density is summed


def check_event(
    event: EventModel | type[EventModel] | str, draw: Any = None, *, prior: Any = None, seed: int = 0
) -> None:
    """Check the properties of an event model; the first violation is an AssertionError that names the rows.

    ``draw(rng, y)`` gives a column with one value for each class code, where the event model's ``support`` does not
    define its values. ``prior`` is one with every number given: with it evidence is checked too.

    >>> from candide.events import EventModel, Support
    >>> from candide.priors import Gamma
    >>> check_event("poisson", prior=Gamma(1.5, 0.4))

    An event model of your own, with a mistake in it:

    >>> class Waiting(EventModel):
    ...     name, kind, support = "waiting", "sums", Support(low=0.0)
    ...
    ...     def parameters(self, tally, prior, how):
    ...         return {"rate": tally.n / tally.total}
    ...
    ...     def log_density(self, x, rate):
    ...         return -rate * x
    >>> check_event(Waiting())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: waiting: a density has mass one: fails on plain rows: estimate 'mle', class 0: ...
    """
    event = resolve_event(event)
    values = _values(event) if draw is None else CustomColumns(draw)
    width = 1 if isinstance(values, DocumentColumns) else 3
    title = event.name or type(event).__name__
    trials = {name: EventTrial(event, example, prior) for name, example in examples(values, seed, width).items()}
    run_checks(_COMMON_CHECKS, trials, title)
    run_checks(_FULL_DATA_CHECKS, {name: trial for name, trial in trials.items() if trial.example.is_full}, title)
    alone = examples(values, seed + 1, 1)["plain rows"]
    run_checks([check_evidence], {"plain rows": EventTrial(event, alone, prior)}, title)


def _values(event: EventModel) -> Any:
    """What a column of this event model holds."""
    kind = event.encoding.block_kind
    if kind == "documents":
        return DocumentColumns()
    is_text = kind == "codes" and event.encoding.is_read_as_text
    return CategoryColumns() if is_text else NumberColumns(*_support_ends(event))


@dataclass(frozen=True, eq=False)
class EventTrial:
    """An event model on some rows."""

    event: EventModel
    example: Example
    prior: Prior | None

    @property
    def part(self) -> PlanPart:
        return PlanPart(self.event, tuple("abc"[: len(self.example.columns)])).with_levels(self.table(self.example))

    def table(self, rows: Example) -> Table:
        return Table.from_data(dict(zip("abc", rows.columns, strict=False)))

    def block(self, rows: Example | None = None) -> Any:
        return self.part.block(self.table(self.example if rows is None else rows))

    def count(self, rows: Example | None = None) -> Any:
        rows = self.example if rows is None else rows
        return self.tally(self.block(rows), rows)

    def tally(self, block: Block, rows: Example) -> Any:
        return arrays.tally_block(self.part, block, rows.y, rows.weight, rows.n_classes)

    def estimate(self, tally: Any, how: str) -> Distribution:
        return self.event.estimate(tally, how=how)

    def possible_estimates(self, tally: Any) -> list[str]:
        """The estimates that there are: without rows of a class those that a prior helps, and none that is refused."""
        hows = ESTIMATES if self.example.is_full else ("mean", "predictive") if self.event.prior is not None else ()
        return [how for how in hows if self._is_possible(tally, how)]

    def _is_possible(self, tally: Any, how: str) -> bool:
        try:
            return bool(self.estimate(tally, how))
        except InputError:
            return False


def check_chunks(trial: EventTrial) -> None:
    """Chunks add up to the whole."""
    a, b = (trial.count(part) for part in trial.example.split())
    _check_same_distribution(trial, a + b, trial.count())
    _check_same_distribution(trial, b + a, trial.count())


def check_subtraction(trial: EventTrial) -> None:
    """Subtracting gives back."""
    b, a = (trial.count(part) for part in trial.example.split())
    _check_same_distribution(trial, (a + b) - b, a, rel=max(1e-7, 100 * trial.example.rel))


def check_repetition(trial: EventTrial) -> None:
    """A weight is so many copies, and none is none."""
    times = np.random.default_rng(0).integers(1, 4, len(trial.example))
    if not trial.example.is_full:
        times[::2] = 0
    copies = trial.example.take(np.repeat(np.arange(len(trial.example)), times)).with_weight(None)
    _check_same_distribution(trial, trial.count(trial.example.with_weight(times.astype(float))), trial.count(copies))


def check_contributions(trial: EventTrial) -> None:
    """Contributions add up to log_prob."""
    block, tally = trial.block(), trial.count()
    for how in trial.possible_estimates(tally):
        fit = trial.estimate(tally, how)
        log_prob, parts = fit.log_prob(block), fit.contributions(block)
        assert log_prob.shape == (len(trial.example), trial.example.n_classes), f"log_prob has shape {log_prob.shape}"
        assert parts.shape[:2] == log_prob.shape, f"contributions have shape {parts.shape}"
        check_close(parts.sum(axis=2), log_prob, f"estimate {how!r}: the sum of contributions", trial.example.rel)


def check_missing_values(trial: EventTrial) -> None:
    """An absent value adds nothing."""
    columns = tuple(np.full(3, None if c.dtype == object else np.nan, c.dtype) for c in trial.example.columns)
    nothing = trial.block(replace(trial.example, columns=columns))
    tally = trial.count()
    for how in trial.possible_estimates(tally):
        fit = trial.estimate(tally, how)
        check_close(
            fit.log_prob(nothing),
            np.zeros((3, trial.example.n_classes)),
            f"estimate {how!r}: log_prob of nothing",
        )
        assert not fit.contributions(nothing).any(), f"estimate {how!r}: the contributions of nothing are not 0"


def check_finite_scores(trial: EventTrial) -> None:
    """Scores are finite, near and far, even where nothing was counted."""
    far, tally = _far_values(trial), trial.count()
    for how in set(trial.possible_estimates(tally)) & {"mean", "predictive"}:
        fit = trial.estimate(tally, how)
        for what, block in {"the rows": trial.block(), "values far away": far}.items():
            assert np.isfinite(fit.log_prob(block)).all(), f"estimate {how!r}: log_prob of {what} is not finite"
        for name, values in fit.parameters().items():
            assert np.isfinite(values).all(), f"estimate {how!r}: {name} is not finite"


def check_tally_unchanged(trial: EventTrial) -> None:
    """Estimating leaves the tally as it is."""
    tally = trial.count()
    before = {name: state.copy() for name, state in tally.arrays().items()}
    for how in trial.possible_estimates(tally):
        trial.estimate(tally, how)
    for name, state in tally.arrays().items():
        check_close(state, before[name], name, rel=0.0)


def check_held_out(trial: EventTrial) -> None:
    """Held-out contributions are those of an estimate without the row."""
    rows = trial.example.take(slice(0, 9))
    tally, block = trial.count(rows), trial.block(rows)
    chosen = trial.event.freeze_structure(tally)
    for how in set(trial.possible_estimates(tally)) & {"mean", "predictive"}:
        found = trial.event.held_out_contributions(tally, None, how, block, rows.y, rows.weight)
        for i in range(len(rows)):
            one = rows.take(slice(i, i + 1))
            fit = chosen.estimate(tally - trial.count(one), how=how)
            check_close(found[i : i + 1], fit.contributions(trial.block(one)), f"estimate {how!r}: row {i}", 1e-6)


def check_sparse_rows(trial: EventTrial) -> None:
    """Sparse rows are counted and scored as dense ones."""
    block = trial.block()
    if not trial.event.accepts_sparse or np.isnan(block).any():
        return
    block = np.where(block < 1.0, 0.0, block)
    packed = to_sparse(block)
    tally = trial.tally(packed, trial.example)
    check_same_state(tally, trial.tally(block, trial.example), trial.example.rel)
    for how in trial.possible_estimates(tally):
        fit = trial.estimate(tally, how)
        check_close(
            fit.log_prob(packed),
            fit.log_prob(block),
            f"estimate {how!r}: log_prob",
            trial.example.rel,
        )


_COMMON_CHECKS = [  # of any rows
    check_chunks,
    check_subtraction,
    check_repetition,
    check_contributions,
    check_missing_values,
    check_finite_scores,
    check_tally_unchanged,
    check_held_out,
    check_sparse_rows,
]


def check_sampling(trial: EventTrial) -> None:
    """Fitting undoes sampling."""
    tally, y = trial.count(), np.tile(np.arange(trial.example.n_classes), 4000)
    try:
        fit = trial.estimate(tally, "mle")
        drawn = _draw_column(fit, y)
    except InputError:
        return  # it cannot sample, or has no such estimate
    assert _equal(drawn, _draw_column(fit, y)), "the same generator drew other rows"
    again = trial.estimate(trial.tally(drawn, Example((), y, None, trial.example.n_classes)), "mle")
    own = np.arange(len(y)), y
    gain = float((again.log_prob(drawn)[own] - fit.log_prob(drawn)[own]).sum())
    # Twice the gain is chi-squared with as many degrees of freedom as there are parameters (Wilks, 1938).
    most = 20.0 + 2.0 * sum(p.size for p in fit.parameters().values())
    assert abs(gain) <= most, (
        f"the fit to {len(y)} sampled rows makes them exp({gain:.3g}) times as likely "
        "as the distribution that drew them"
    )


def check_files(trial: EventTrial) -> None:
    """Saved or pickled, it is the same."""
    event, part, tally = trial.event, trial.part, trial.count()
    if getattr(sys.modules.get(type(event).__module__), type(event).__qualname__, None) is type(event):
        fit = trial.estimate(tally, "mean")
        event, tally, again = pickle.loads(pickle.dumps((event, tally, fit)))
        assert event == trial.event, f"pickled, {trial.event!r} is {event!r}"
        check_close(again.log_prob(trial.block()), fit.log_prob(trial.block()), "pickled, log_prob", rel=0.0)
    if event.name not in EVENTS or EVENTS[event.name] is not type(event):
        return  # a file keeps none but the package's own
    from candide import store

    rows = trial.example
    weight = np.bincount(rows.y, rows.weight, rows.n_classes).astype(float)
    labels = Labels.from_values(np.arange(rows.n_classes))
    fitted = FittedModel(ModelCounts(Plan(part.columns, (part,)), labels, weight, (tally,), len(rows)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checked.candide"
        store.save(fitted, path)
        found = store.load(path)
    check_close(
        found.posterior(trial.table(rows)), fitted.posterior(trial.table(rows)), "saved, the posterior", rel=1e-12
    )


def check_mass(trial: EventTrial) -> None:
    """A density has mass one."""
    if not trial.event.has_density or trial.part.block_kind == "documents":
        return
    values, widths = _support_grid(trial)
    words, tally = np.eye(len(trial.example.columns)), trial.count()
    for how in trial.possible_estimates(tally):
        fit = trial.estimate(tally, how)
        with np.errstate(divide="ignore", over="ignore"):
            alone = np.exp(_marginal_log_density(fit, values, words.shape[1])) * widths[:, None]
            together = (
                np.exp(fit.log_prob(words)).sum(axis=0) if trial.event.accepts_groups else np.zeros(fit.n_classes)
            )
        for c, found in enumerate(alone.sum(axis=0)):  # of a value of the first column, or of one word in a bag
            near = min(abs(found - 1.0), abs(together[c] - 1.0))
            assert near <= 1e-3, f"estimate {how!r}, class {c}: the mass is {found:.4g}"


def check_evidence(trial: EventTrial) -> None:
    """Evidence is the product of predictions one step ahead."""
    rows = trial.example.take(slice(0, 8))
    if trial.prior is None:
        return
    try:
        found = trial.event.evidence(trial.count(rows), trial.prior)
    except InputError:
        return  # it has none
    assert found.shape == (rows.n_classes, 1), f"evidence has shape {found.shape}"
    total = 0.0
    for i in range(len(rows)):
        one = rows.take(slice(i, i + 1))
        fit = trial.event.estimate(trial.count(rows.take(slice(0, i))), trial.prior, "predictive")
        total += fit.log_prob(trial.block(one))[0, one.y[0]]
    check_close(found.sum(), np.array(total), "the sum of evidence", 1e-8, size=1.0)


_FULL_DATA_CHECKS = [check_mass, check_sampling, check_files]  # of rows that determine every estimate
EVENT_CHECKS = [*_COMMON_CHECKS, *_FULL_DATA_CHECKS, check_evidence]


def _check_same_distribution(trial: EventTrial, got: Any, want: Any, rel: float | None = None) -> None:
    """Two tallies give the same distributions."""
    block = trial.block()
    for how in trial.possible_estimates(want):
        one, other = trial.estimate(got, how), trial.estimate(want, how)
        check_close(one.log_prob(block), other.log_prob(block), f"estimate {how!r}: log_prob", rel or trial.example.rel)


def _draw_column(fit: Distribution, y: NDArray) -> Any:
    rows = fit.sample(y, np.random.default_rng(7))
    return Documents.from_column(rows[:, 0].tolist()) if rows.dtype == object else rows


def _equal(a: Any, b: Any) -> bool:
    return a.objects == b.objects if isinstance(a, Documents) else bool((a == b).all())


def _far_values(trial: EventTrial) -> Any:
    """Values a million times as large as any that were counted; of categories and documents others."""
    columns = trial.example.columns
    if columns[0].dtype == object:
        return trial.block(replace(trial.example, columns=tuple(np.full(2, "unseen", object) for _ in columns)))
    low, high, whole = _support_ends(trial.event)
    ends = [1e6 if np.isinf(high) else high, -1e6 if np.isinf(low) else low + (1.0 if whole else 1e-6)]
    near = [float(np.nan_to_num(np.nanmax(c, initial=0.0))) for c in columns]
    columns = tuple(np.array([end + (n if abs(end) == 1e6 else 0.0) for end in ends]) for n in near)
    return trial.block(replace(trial.example, columns=columns))


def _marginal_log_density(fit: Distribution, values: NDArray, width: int) -> Floats:
    """(value, class) log-density of values of the first of some columns, the others absent."""
    block = np.full((len(values), width), -1 if values.dtype.kind == "i" else np.nan, values.dtype)
    block[:, 0] = values
    return fit.log_prob(block)


def _support_grid(trial: EventTrial) -> tuple[NDArray, Floats]:
    """Values that a column may have, and how much of the line each stands for."""
    spec, column = trial.part.spec, trial.example.columns[0]
    if spec.threshold is not None:
        return spec.threshold + np.array([-1.0, 1.0]), np.ones(2)
    if trial.part.block_kind == "codes":
        return np.arange(spec.sizes[0], dtype=np.int32), np.ones(spec.sizes[0])
    low, high, whole = _support_ends(trial.event)
    if whole:
        x = np.arange(max(low, -_GRID_POINTS), min(high, low + _GRID_POINTS) + 1.0)
        return x, np.ones(len(x))
    u = (np.arange(_GRID_POINTS) + 0.5) / _GRID_POINTS
    middle, scale = float(np.median(column)), float(np.std(column)) + 1e-3
    if np.isfinite(low) and np.isfinite(high):
        x, slope = low + (high - low) * u, np.full(_GRID_POINTS, high - low)
    elif np.isfinite(low):
        x, slope = low + scale * u / (1 - u), scale / (1 - u) ** 2
    elif np.isfinite(high):
        x, slope = high - scale * u / (1 - u), scale / (1 - u) ** 2
    else:  # the quantiles of a Cauchy distribution: few tails are heavier
        x = middle + scale * np.tan(np.pi * (u - 0.5))
        slope = scale * np.pi / np.cos(np.pi * (u - 0.5)) ** 2
    return x, slope / _GRID_POINTS


def _support_ends(event: EventModel) -> tuple[float, float, bool]:
    """Between what numbers its values lie, and whether they are whole."""
    support = event.support or Support()
    return support.low, support.high, support.is_integer
