"""Checks of an event model: of its counts, scores, density, samples, evidence and files."""

import pickle
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Csr, Floats
from candide.data.documents import Documents
from candide.data.labels import Labels
from candide.data.table import Table
from candide.distributions import Distribution
from candide.engines import arrays
from candide.errors import InputError
from candide.events import ESTIMATES, EVENTS, EventModel, Support, resolve_event
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.priors import Prior
from candide.testing import checks
from candide.testing.checks import Example, check_close

_GRID_POINTS = 40_001  # points at which a density is summed
_SMOOTHED = ("mean", "predictive")  # estimates that a prior keeps finite


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
    if draw is None:
        kind = event.encoding.block_kind
        is_text = kind == "codes" and event.encoding.is_read_as_text
        numbers = checks.NumberColumns(event.support or Support())
        draw = checks.draw_documents if kind == "documents" else checks.draw_categories if is_text else numbers
    examples = checks.make_examples(draw, seed, 1 if draw is checks.draw_documents else 3)
    title = event.name or type(event).__name__
    trials = {name: EventTrial(event, example, prior) for name, example in examples.items()}
    checks.run_checks(_COMMON_CHECKS, trials, title)
    checks.run_checks(_FULL_DATA_CHECKS, {name: t for name, t in trials.items() if t.example.is_full}, title)
    alone = checks.make_examples(draw, seed + 1, 1)["plain rows"]
    checks.run_checks([check_evidence], {"plain rows": EventTrial(event, alone, prior)}, title)


@dataclass(frozen=True, eq=False)
class EventTrial:
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

    def fits(self, tally: Any, hows: tuple[str, ...] = ESTIMATES) -> Iterator[tuple[str, Distribution]]:
        """Return the possible estimates: for a class without rows, those that a prior smooths."""
        possible = ESTIMATES if self.example.is_full else _SMOOTHED if self.event.prior is not None else ()
        for how in hows:
            if how in possible:
                try:
                    fit = self.event.estimate(tally, how=how)
                except InputError:
                    continue
                yield how, fit

    def check_same_fits(self, got: Any, expected: Any, rel: float | None = None) -> None:
        block = self.block()
        for how, fit in self.fits(expected):
            log_prob = self.event.estimate(got, how=how).log_prob(block)
            check_close(log_prob, fit.log_prob(block), f"estimate {how!r}: log_prob", rel or self.example.rel)


def check_chunks(trial: EventTrial) -> None:
    """Chunks add up to the whole."""
    a, b = (trial.count(part) for part in trial.example.split())
    trial.check_same_fits(a + b, trial.count())
    trial.check_same_fits(b + a, trial.count())


def check_subtraction(trial: EventTrial) -> None:
    """Subtracting gives back."""
    b, a = (trial.count(part) for part in trial.example.split())
    trial.check_same_fits((a + b) - b, a, rel=max(1e-7, 100 * trial.example.rel))


def check_repetition(trial: EventTrial) -> None:
    """A weight is so many copies, and none is none."""
    times = np.random.default_rng(0).integers(1, 4, len(trial.example))
    if not trial.example.is_full:
        times[::2] = 0
    copies = trial.example.take(np.repeat(np.arange(len(trial.example)), times)).with_weight(None)
    trial.check_same_fits(trial.count(trial.example.with_weight(times.astype(float))), trial.count(copies))


def check_contributions(trial: EventTrial) -> None:
    """Contributions add up to log_prob."""
    block = trial.block()
    for how, fit in trial.fits(trial.count()):
        log_prob, parts = fit.log_prob(block), fit.contributions(block)
        assert log_prob.shape == (len(trial.example), trial.example.n_classes), f"log_prob has shape {log_prob.shape}"
        assert parts.shape[:2] == log_prob.shape, f"contributions have shape {parts.shape}"
        check_close(parts.sum(axis=2), log_prob, f"estimate {how!r}: the sum of contributions", trial.example.rel)


def check_missing_values(trial: EventTrial) -> None:
    """An absent value adds nothing."""
    columns = tuple(np.full(3, None if c.dtype == object else np.nan, c.dtype) for c in trial.example.columns)
    missing = trial.block(replace(trial.example, columns=columns))
    zeros = np.zeros((3, trial.example.n_classes))
    for how, fit in trial.fits(trial.count()):
        check_close(fit.log_prob(missing), zeros, f"estimate {how!r}: log_prob of nothing")
        assert not fit.contributions(missing).any(), f"estimate {how!r}: the contributions of nothing are not 0"


def check_finite_scores(trial: EventTrial) -> None:
    """Scores are finite, near and far, even where nothing was counted."""
    columns, support = trial.example.columns, trial.event.support or Support()
    if columns[0].dtype == object:  # unseen categories and documents
        columns = tuple(np.full(2, "unseen", object) for _ in columns)
    else:  # a million times as large as any that were counted
        low = -1e6 if np.isinf(support.low) else support.low + (1.0 if support.is_integer else 1e-6)
        ends = [1e6 if np.isinf(support.high) else support.high, low]
        near = [float(np.nan_to_num(np.nanmax(c, initial=0.0))) for c in columns]
        columns = tuple(np.array([end + (n if abs(end) == 1e6 else 0.0) for end in ends]) for n in near)
    far = trial.block(replace(trial.example, columns=columns))
    for how, fit in trial.fits(trial.count(), _SMOOTHED):
        for what, block in {"the rows": trial.block(), "values far away": far}.items():
            assert np.isfinite(fit.log_prob(block)).all(), f"estimate {how!r}: log_prob of {what} is not finite"
        for name, values in fit.parameters().items():
            assert np.isfinite(values).all(), f"estimate {how!r}: {name} is not finite"


def check_tally_unchanged(trial: EventTrial) -> None:
    """Estimating leaves the tally as it is."""
    tally = trial.count()
    before = {name: state.copy() for name, state in tally.arrays().items()}
    list(trial.fits(tally))
    for name, state in tally.arrays().items():
        check_close(state, before[name], name, rel=0.0)


def check_held_out(trial: EventTrial) -> None:
    """Held-out contributions are those of an estimate without the row."""
    rows = trial.example.take(slice(0, 9))
    tally, block = trial.count(rows), trial.block(rows)
    event = trial.event.freeze_structure(tally)
    for how, _ in trial.fits(tally, _SMOOTHED):
        held_out = trial.event.held_out_contributions(tally, None, how, block, rows.y, rows.weight)
        for i, row in enumerate(rows.each_row()):
            fit = event.estimate(tally - trial.count(row), how=how)
            check_close(held_out[i : i + 1], fit.contributions(trial.block(row)), f"estimate {how!r}: row {i}", 1e-6)


def check_sparse_rows(trial: EventTrial) -> None:
    """Sparse rows are counted and scored as dense ones."""
    block = trial.block()
    if not trial.event.accepts_sparse or np.isnan(block).any():
        return
    block = np.where(block < 1.0, 0.0, block)
    row, column = np.nonzero(block)
    starts = np.searchsorted(row, np.arange(len(block) + 1))
    sparse = Csr(block[row, column], column.astype(np.int32), starts, block.shape[1])
    tally = trial.tally(sparse, trial.example)
    checks.check_same_state(tally, trial.tally(block, trial.example), trial.example.rel)
    for how, fit in trial.fits(tally):
        check_close(fit.log_prob(sparse), fit.log_prob(block), f"estimate {how!r}: log_prob", trial.example.rel)


def check_sampling(trial: EventTrial) -> None:
    """Fitting undoes sampling."""
    y = np.tile(np.arange(trial.example.n_classes), 4000)

    def draw() -> Any:
        rows = fit.sample(y, np.random.default_rng(7))
        return Documents.from_column(rows[:, 0].tolist()) if rows.dtype == object else rows

    try:
        fit = trial.event.estimate(trial.count(), how="mle")
        drawn, repeated = draw(), draw()
    except InputError:
        return  # it cannot sample, or has no such estimate
    is_same = drawn.objects == repeated.objects if isinstance(drawn, Documents) else (drawn == repeated).all()
    assert is_same, "the same generator drew other rows"
    again = trial.event.estimate(trial.tally(drawn, Example((), y, None, trial.example.n_classes)), how="mle")
    drawn_class = np.arange(len(y)), y
    gain = float((again.log_prob(drawn)[drawn_class] - fit.log_prob(drawn)[drawn_class]).sum())
    # Twice the gain is chi-squared with as many degrees of freedom as there are parameters (Wilks, 1938).
    most = 20.0 + 2.0 * sum(p.size for p in fit.parameters().values())
    times = f"exp({gain:.3g}) times as likely as the distribution that drew them"
    assert abs(gain) <= most, f"the fit to {len(y)} sampled rows makes them {times}"


def check_files(trial: EventTrial) -> None:
    """Saved or pickled, it is the same."""
    event, part, tally = trial.event, trial.part, trial.count()
    if getattr(sys.modules.get(type(event).__module__), type(event).__qualname__, None) is type(event):
        fit = event.estimate(tally, how="mean")
        event, tally, again = pickle.loads(pickle.dumps((event, tally, fit)))
        assert event == trial.event, f"pickled, {trial.event!r} is {event!r}"
        check_close(again.log_prob(trial.block()), fit.log_prob(trial.block()), "pickled, log_prob", rel=0.0)
    if event.name not in EVENTS or EVENTS[event.name] is not type(event):
        return  # a file holds only the package's event models
    from candide import store

    rows, table = trial.example, trial.table(trial.example)
    weight = np.bincount(rows.y, rows.weight, rows.n_classes).astype(float)
    labels = Labels.from_values(np.arange(rows.n_classes))
    fitted = FittedModel(ModelCounts(Plan(part.columns, (part,)), labels, weight, (tally,), len(rows)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checked.candide"
        store.save(fitted, path)
        loaded = store.load(path)
    check_close(loaded.posterior(table), fitted.posterior(table), "saved, the posterior", rel=1e-12)


def check_mass(trial: EventTrial) -> None:
    """A density has mass one."""
    if not trial.event.has_density or trial.part.block_kind == "documents":
        return
    values, widths = _support_grid(trial)
    n_columns = len(trial.example.columns)
    block = np.full((len(values), n_columns), -1 if values.dtype.kind == "i" else np.nan, values.dtype)
    block[:, 0] = values  # the other columns are missing
    for how, fit in trial.fits(trial.count()):
        with np.errstate(divide="ignore", over="ignore"):
            masses = (np.exp(fit.log_prob(block)) * widths[:, None]).sum(axis=0)
            is_bag = trial.event.accepts_groups  # of words: the mass of one word
            words = np.exp(fit.log_prob(np.eye(n_columns))).sum(axis=0) if is_bag else np.zeros(fit.n_classes)
        for c, mass in enumerate(masses):
            is_one = min(abs(mass - 1.0), abs(words[c] - 1.0)) <= 1e-3
            assert is_one, f"estimate {how!r}, class {c}: the mass is {mass:.4g}"


def check_evidence(trial: EventTrial) -> None:
    """Evidence is the product of predictions one step ahead."""
    rows = trial.example.take(slice(0, 8))
    if trial.prior is None:
        return
    try:
        evidence = trial.event.evidence(trial.count(rows), trial.prior)
    except InputError:
        return  # it has none
    assert evidence.shape == (rows.n_classes, 1), f"evidence has shape {evidence.shape}"
    total = 0.0
    for i, row in enumerate(rows.each_row()):
        fit = trial.event.estimate(trial.count(rows.take(slice(0, i))), trial.prior, "predictive")
        total += fit.log_prob(trial.block(row))[0, row.y[0]]
    check_close(evidence.sum(), np.array(total), "the sum of evidence", 1e-8, size=1.0)


_COMMON_CHECKS = [  # of any rows
    check_chunks, check_subtraction, check_repetition, check_contributions, check_missing_values, check_finite_scores,
    check_tally_unchanged, check_held_out, check_sparse_rows,
]  # fmt: skip
_FULL_DATA_CHECKS = [check_mass, check_sampling, check_files]  # of rows that determine every estimate
EVENT_CHECKS = [*_COMMON_CHECKS, *_FULL_DATA_CHECKS, check_evidence]


def _support_grid(trial: EventTrial) -> tuple[NDArray, Floats]:
    """Return values that a column may have, and how much of the line each stands for."""
    spec, column = trial.part.spec, trial.example.columns[0]
    if spec.threshold is not None:
        return spec.threshold + np.array([-1.0, 1.0]), np.ones(2)
    if trial.part.block_kind == "codes":
        return np.arange(spec.sizes[0], dtype=np.int32), np.ones(spec.sizes[0])
    support = trial.event.support or Support()
    low, high = support.low, support.high
    if support.is_integer:
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
