"""Checks of an engine: its counts and scores are those of the array engine."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from candide.data.labels import is_absent
from candide.data.sample import assign_folds_by_key
from candide.data.table import Table
from candide.engines.base import Engine, Folds, LabelledSource, Source
from candide.engines.base import get_engine as engine_named
from candide.errors import InputError
from candide.model.counts import ModelCounts, align_counts
from candide.model.plan import Plan, PlanPart
from candide.testing.checks import check_close, check_same_state, run_checks, with_missing

_BATCH_ROWS = 7  # rows in a batch


def check_engine(
    engine: Engine, make: Callable[[Any], Any] | None = None, *, seed: int = 0, typed: bool = True
) -> None:
    """Check the properties of an engine; the first violation is an AssertionError that names the rows.

    ``make`` turns an Arrow table into what the engine opens: it writes a file, or fills a table of a database. Where
    that has no types for dates, decimals and booleans, as a CSV, pass ``typed=False``: they are left out.

    >>> from candide.engines.base import get_engine
    >>> check_engine(get_engine("duckdb"))
    """
    make = make or (lambda table: table)
    cases = _edge_cases(seed) | (_typed_cases(seed) if typed else {})
    run_checks(ENGINE_CHECKS, {name: EngineTrial(engine, make, *case) for name, case in cases.items()}, engine.name)
    for check, make_case in LARGE_CHECKS.items():
        trial = EngineTrial(engine, make, *make_case(seed))
        run_checks([check], {f"{len(trial.columns['y'])} rows": trial}, engine.name)


@dataclass(frozen=True, eq=False)
class EngineTrial:
    """An engine on some rows, their label in ``y``, their number in ``row``, perhaps their weight in ``w``."""

    engine: Engine
    make: Callable[[Any], Any]
    columns: Mapping[str, Any]
    events: Any = "auto"

    @property
    def weight(self) -> str | None:
        return "w" if "w" in self.columns else None

    @property
    def table(self) -> Any:
        import pyarrow as pa

        return pa.table({name: pa.array(values, from_pandas=True) for name, values in self.columns.items()})

    def open(self) -> Source:
        return self.engine.open(self.make(self.table))

    def count(self, source: Any, folds: Folds | None = None) -> list[ModelCounts]:
        from candide.engines.counting import count_source, prepare_source

        prepared = prepare_source(source, "y", self.events, ["row"], self.weight)
        return count_source(LabelledSource(source, "y", self.weight, folds), prepared).fold_counts

    def array_counts(self, rows: Any = None) -> ModelCounts:
        with engine_named("arrays").open(Table.from_data(self.table if rows is None else rows)) as source:
            return self.count(source)[0]


def check_reading(trial: EngineTrial) -> None:
    """Batches hold every row once, each time they are read."""
    names = [name for name in trial.columns if name != "y"]
    expected = {row["row"]: row for row in trial.table.select(names).to_pylist()}
    numbers = [name for name in names if np.asarray(trial.columns[name]).dtype.kind in "if"]
    with trial.open() as source:
        assert list(source.columns) == list(trial.columns), f"columns {list(source.columns)}"
        source.read_numbers(numbers)
        assert source.head(3).num_rows == min(3, len(expected)), "head(3) has other than three rows"
        for _ in range(2):
            rows = [row for batch in source.batches(names, _BATCH_ROWS) for row in batch.to_pylist()]
            assert sorted(row["row"] for row in rows) == sorted(expected), "rows are lost or doubled"
            for row in rows:
                other = expected[row["row"]]
                values, others = ({name: _to_float(value) for name, value in r.items()} for r in (row, other))
                assert values == others, f"{row} instead of {other}"


def _to_float(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def check_counting(trial: EngineTrial) -> None:
    """It counts what the array engine counts."""
    with trial.open() as source:
        [counts] = trial.count(source)
        _check_same_counts(counts, trial.array_counts())
        [again] = trial.count(source)
        _check_same_counts(again, counts)


def check_folding(trial: EngineTrial) -> None:
    """Folds are those of the batches, have their part of each class, and add up to the whole."""
    with trial.open() as source:
        if not source.has_order:
            return
        source.materialise()
        folds = _check_fold_counts(trial, source, Folds(3, 5, "y"))
    labels = [str(label) for label in trial.columns["y"]]
    sizes = Counter(zip(labels, folds, strict=True))
    for label in set(labels):
        per_fold = [sizes[label, f] for f in range(3)]
        assert max(per_fold) - min(per_fold) <= 1, f"class {label!r} has {per_fold} rows in the folds"


def check_folding_by_key(trial: EngineTrial) -> None:
    """Folds by a key follow its hash, are those of the batches and add up to the whole."""
    with trial.open() as source:
        by_key = {"y": _read_folds(trial, source, Folds(3, 5, "y", "y"))}
        by_key["row"] = _check_fold_counts(trial, source, Folds(3, 5, "y", "row"))
    for key, folds in by_key.items():
        expected = assign_folds_by_key(trial.columns[key], 3, 5).tolist()
        assert folds == expected, f"folds by {key!r} are {folds} instead of {expected}"


def _check_fold_counts(trial: EngineTrial, source: Source, folds: Folds) -> list[int]:
    """Return the fold of each row, and check that the row is counted in it."""
    fold_counts = trial.count(source, folds)
    fold_of_row = _read_folds(trial, source, folds)
    assert len(fold_counts) == folds.n, f"{len(fold_counts)} counts of {folds.n} folds"
    _check_same_counts(reduce(add, fold_counts), trial.array_counts())
    for f, counts in enumerate(fold_counts):
        _check_same_counts(counts, trial.array_counts(trial.table.filter([fold == f for fold in fold_of_row])))
    return fold_of_row


def _read_folds(trial: EngineTrial, source: Source, folds: Folds) -> list[int]:
    fold_of_row: dict[int, int] = {}
    for batch in source.batches(["row"], _BATCH_ROWS, folds):
        rows, numbers = (map(int, column.to_pylist()) for column in batch.columns)
        fold_of_row |= zip(rows, numbers, strict=True)
    return [fold_of_row[int(row)] for row in trial.columns["row"]]


def check_sampling(trial: EngineTrial) -> None:
    """A sample holds rows that have a label and a weight, all where they are few, and again the same."""
    from candide.engines.draw_sample import draw_source_rows
    from candide.events import Gaussian

    plan = Plan(("row",), (PlanPart(Gaussian(), ("row",)),))
    has_weight = np.array([not is_absent(label) for label in trial.columns["y"]])
    if trial.weight:
        has_weight &= np.asarray(trial.columns["w"]) > 0
    expected = np.asarray(trial.columns["row"])[has_weight].tolist()
    with trial.open() as source:
        source.materialise()
        source.read_numbers(["row", *([trial.weight] if trial.weight else [])])
        labelled = LabelledSource(source, "y", trial.weight)
        samples = [draw_source_rows(labelled, plan, size).table["f0"].to_pylist() for size in (len(expected), 9, 9)]
    every, nine, again = samples
    assert sorted(every) == expected, "of few rows not all were drawn, or others"
    assert len(set(nine) & set(expected)) == len(nine) == 9, f"{nine} are not 9 of the rows"
    assert nine == again, f"{again} were drawn after {nine}"


def check_scoring(trial: EngineTrial) -> None:
    """It scores as the array engine does."""
    from candide.engines.predictions import predict_table
    from candide.model.fitted import FittedModel

    fitted = FittedModel(trial.array_counts())
    expected = predict_table(fitted, Table.from_data(trial.table), keep=["row"]).to_pydict()
    with trial.open() as source:
        table = predict_table(fitted, source, keep=["row"])
        scored = (table.toArrow() if hasattr(table, "toArrow") else table).to_pydict()  # of Spark, a data frame
    assert list(scored) == list(expected), f"columns {list(scored)} instead of {list(expected)}"
    rows, others = (np.array(t["row"]).astype(int) for t in (scored, expected))  # a file without types gives text
    assert sorted(rows) == sorted(others), "rows are lost or doubled"
    for name in (name for name in expected if name.startswith("p_")):
        by_row, by_other = np.array(scored[name])[np.argsort(rows)], np.array(expected[name])[np.argsort(others)]
        check_close(by_row, by_other, name, 1e-7)


def check_refusals(trial: EngineTrial) -> None:
    """An infinity, and a target that is not there, are refused."""
    from candide.fit_source import fit_model

    x = np.arange(30.0)
    x[17] = np.inf
    infinite = {"x": x, "y": ["a", "b", "c"] * 10}
    for columns, target, what in (
        (infinite, "y", "an infinity was counted"),
        (trial.columns, "no such column", "a column that is not there was learned"),
    ):
        try:
            with replace(trial, columns=columns, events="auto").open() as source:
                fit_model(source, target)
        except InputError:
            continue
        raise AssertionError(what)


def check_learning(trial: EngineTrial) -> None:
    """The default model, of pairs and more, is that of the array engine."""
    from candide.engines.predictions import predict_table
    from candide.fit_source import fit_model

    table = Table.from_data(trial.table)
    expected = predict_table(fit_model(table, "y", drop=["row"]).fitted, table)
    with trial.open() as source:
        scored = predict_table(fit_model(source, "y", drop=["row"]).fitted, table)
    for name in expected.column_names[1:-1]:
        check_close(scored[name].to_numpy(), expected[name].to_numpy(), name, 1e-6)


def _check_same_counts(counts: ModelCounts, expected: ModelCounts) -> None:
    labels, others = counts.labels.values, expected.labels.values
    assert labels == others, f"labels {labels} instead of {others}"
    assert counts.n_rows == expected.n_rows, f"{counts.n_rows} rows instead of {expected.n_rows}"
    check_close(counts.class_weight, expected.class_weight, "the weights of classes")
    counts, expected = align_counts(counts, expected)
    for part, tally, other in zip(expected.plan.parts, counts.tallies, expected.tallies, strict=True):
        try:
            check_same_state(tally, other, 1e-6)
        except AssertionError as error:
            raise AssertionError(f"columns {list(part.columns)} as {part.event.name}: {error}") from None


ENGINE_CHECKS = [
    check_reading, check_counting, check_folding, check_folding_by_key, check_sampling, check_scoring, check_refusals,
]  # fmt: skip
Case = tuple[Mapping[str, Any], Any]  # columns, and their event models


def _edge_cases(seed: int) -> dict[str, Case]:
    """Tables by what is nasty about them, and the event models of their columns."""
    rng = np.random.default_rng(seed)
    n = 90
    kind = rng.integers(0, 3, n)
    y = np.array(["no", "yes", "été"], object)[kind]
    x = rng.normal(kind, 1.0, n)
    word = np.array(["ant", "bee", "c'at", ""], object)[rng.integers(0, 4, n)]
    word[word == ""] = "dog" if seed % 2 else "ox"
    holes = rng.random(n) < 0.3
    base = {"row": np.arange(n), "y": y}
    odd_names = {'quote "x"; --': x, "Größe": rng.normal(size=n), "two words": word, "UPPER": word, "it's": word}
    by_event: dict[str, Any] = {name: np.exp(x) for name in ("a", "b", "c")} | {"d": rng.poisson(2.0, n)}
    texts = [" ".join(rng.choice(["ant", "bee", "cat", "dog"], 5)) for _ in range(n)]
    by_event |= {"e": x, "f": x**2, "t": texts}
    events = {"a": "lognormal", "b": "exponential", "c": "bernoulli", "d": "poisson", ("e", "f"): "gaussian-full",
              "t": "text"}  # fmt: skip
    return {
        "numbers": ({**base, "x": x, "whole": rng.integers(-5, 6, n)}, "auto"),
        "numbers far from zero": ({**base, "x": x + 1e8}, "auto"),
        "levels": ({**base, "word": word, "code": rng.integers(1, 4, n)}, {"code": "categorical"}),
        "gaps": ({**base, "x": np.where(holes, np.nan, x), "word": with_missing(word, holes)}, "auto"),
        "weights": ({**base, "x": x, "word": word, "w": rng.choice([0.0, 0.1, 1.0, 2.5], n)}, "auto"),
        "labels that are missing": ({**base, "y": with_missing(y, holes), "x": x, "word": word}, "auto"),
        "odd names": ({**base, **odd_names}, "auto"),
        "numbers as labels": ({**base, "y": kind, "x": x, "word": word}, "auto"),
        "every event model": ({**base, **by_event}, events),
    }


def _typed_cases(seed: int) -> dict[str, Case]:
    """Tables of types that not every source has."""
    rng = np.random.default_rng(seed)
    n = 90
    kind, holes = rng.integers(0, 2, n), rng.random(n) < 0.2
    days = np.datetime64("2024-02-27") + rng.integers(0, 9, n) + 30 * kind
    times = days.astype("datetime64[us]") + rng.integers(0, 10**11, n)
    cents = np.array([Decimal(int(cent)) / 4 for cent in rng.integers(-200, 200, n)], object)
    flag = rng.random(n) < 0.3 + 0.4 * kind
    base = {"row": np.arange(n), "y": np.array(["no", "yes"], object)[kind]}
    gaps = {"day": with_missing(days.astype(object), holes), "price": with_missing(cents, holes)}
    return {
        "dates, decimals and booleans": ({**base, **gaps, "time": times, "flag": flag}, "auto"),
        "such levels": ({**base, **gaps, "flag": flag}, {"day": "categorical", "price": "categorical"}),
    }


def _many_levels_case(seed: int) -> Case:
    """More levels than a query can name."""
    rng = np.random.default_rng(seed)
    n = 100_000
    words = np.char.add("word ", rng.permutation(n).astype(str)).astype(object)
    return {"row": np.arange(n), "y": rng.choice(["a", "b"], n), "word": words}, {"word": "categorical"}


def _pair_case(seed: int) -> Case:
    """Two columns that determine the class only together."""
    rng = np.random.default_rng(seed)
    n = 400
    a, b = rng.integers(0, 2, (2, n))
    words, labels = (np.array(both, object) for both in (["ant", "bee"], ["no", "yes"]))
    columns = {"word": words[a], "number": b + rng.normal(0.0, 0.1, n), "noise": rng.normal(size=n)}
    return {"row": np.arange(n), "y": labels[a ^ b], **columns}, "auto"


LARGE_CHECKS = {check_counting: _many_levels_case, check_learning: _pair_case}  # each on one larger table
