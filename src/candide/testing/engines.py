"""The laws of an engine: whoever counts and reads the rows, counts and scores are those of the array engine."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.engines.base import Engine, Folds, Rows, Source
from candide.engines.base import engine as engine_named
from candide.errors import InputError
from candide.model.census import Census, align
from candide.model.plan import Part, Plan
from candide.rows.labels import is_absent
from candide.rows.lots import by_key
from candide.rows.table import Table
from candide.testing.laws import hold, same, same_state

_FEW = 7  # rows in a batch


def check_engine(
    engine: Engine, make: Callable[[Any], Any] | None = None, *, seed: int = 0, typed: bool = True
) -> None:
    """Check that an engine keeps the laws; the first that it breaks is an AssertionError that says on which rows.

    ``make`` turns an Arrow table into what the engine opens: it writes a file, or fills a table of a database. Where
    that has no types for dates, decimals and booleans, as a CSV, pass ``typed=False``: they are left out.

    >>> from candide.engines.base import engine
    >>> check_engine(engine("duckdb"))
    """
    cases = _cases(seed) | (_typed(seed) if typed else {})
    trials = {name: Trial(engine, make or (lambda table: table), *case) for name, case in cases.items()}
    hold(ENGINE_LAWS, trials, engine.name)
    large = {law: Trial(engine, make or (lambda table: table), *case(seed)) for law, case in LARGE.items()}
    for law, trial in large.items():
        hold([law], {f"{len(trial.columns['y'])} rows": trial}, engine.name)


@dataclass(frozen=True, eq=False)
class Trial:
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

    def count(self, source: Any, folds: Folds | None = None) -> list[Census]:
        from candide.engines.count import count
        from candide.engines.prepare import prepare

        prepared = prepare(source, "y", self.events, ["row"], self.weight)
        return count(Rows(source, "y", self.weight, folds), prepared).censuses

    def census(self, rows: Any = None) -> Census:
        """What the array engine counts."""
        with engine_named("arrays").open(Table.of(self.table if rows is None else rows)) as source:
            return self.count(source)[0]


def reading(trial: Trial) -> None:
    """Batches hold every row once, as often as they are asked for."""
    names = [name for name in trial.columns if name != "y"]
    want = trial.table.select(names).to_pylist()
    numbers = [name for name in names if np.asarray(trial.columns[name]).dtype.kind in "if"]
    with trial.open() as source:
        assert list(source.columns) == list(trial.columns), f"columns {list(source.columns)}"
        source.read_numbers(numbers)
        assert source.head(3).num_rows == min(3, len(want)), "head(3) has other than three rows"
        for _ in range(2):
            batches = list(source.batches(names, _FEW))
            found = [row for batch in batches for row in batch.to_pylist()]
            assert sorted(row["row"] for row in found) == sorted(row["row"] for row in want), "rows are lost or doubled"
            got = {row["row"]: row for row in found}
            for row in want:
                assert _alike(got[row["row"]], row), f"{got[row['row']]} instead of {row}"


def counting(trial: Trial) -> None:
    """It counts what the array engine counts."""
    with trial.open() as source:
        [found] = trial.count(source)
        _same_census(found, trial.census())
        [again] = trial.count(source)
        _same_census(again, found)


def folding(trial: Trial) -> None:
    """Folds are those of the batches, have their part of each class, and add up to the whole."""
    with trial.open() as source:
        if not source.has_order:
            return
        source.materialise()
        fold = _folded(trial, source, Folds(3, 5, "y"))
    labels = [str(label) for label in trial.columns["y"]]
    parts = Counter(zip(labels, fold, strict=True))
    for label in set(labels):
        each = [parts[label, f] for f in range(3)]
        assert max(each) - min(each) <= 1, f"class {label!r} has {each} rows in the folds"


def folding_by_a_key(trial: Trial) -> None:
    """Folds by a key are those that its hash says, and they too are those of the batches and add up to the whole."""
    with trial.open() as source:
        found = {"y": _fold_of(trial, source, Folds(3, 5, "y", "y"))}
        found["row"] = _folded(trial, source, Folds(3, 5, "y", "row"))
    for key, fold in found.items():
        want = by_key(trial.columns[key], 3, 5).tolist()
        assert fold == want, f"folds by {key!r} are {fold} instead of {want}"


def _folded(trial: Trial, source: Source, folds: Folds) -> list[int]:
    """The fold of each row, in which it is counted as well."""
    censuses = trial.count(source, folds)
    fold = _fold_of(trial, source, folds)
    assert len(censuses) == folds.n, f"{len(censuses)} censuses of {folds.n} folds"
    _same_census(reduce(add, censuses), trial.census())
    for f, census in enumerate(censuses):
        _same_census(census, trial.census(trial.table.filter([one == f for one in fold])))
    return fold


def _fold_of(trial: Trial, source: Source, folds: Folds) -> list[int]:
    """The fold of each row, as batches say it."""
    batches = list(source.batches(["row"], _FEW, folds))
    pairs = (zip(*(column.to_pylist() for column in batch.columns), strict=True) for batch in batches)
    fold = {int(row): int(f) for some in pairs for row, f in some}
    return [fold[int(row)] for row in trial.columns["row"]]


def sampling(trial: Trial) -> None:
    """A sample holds rows that have a label and a weight, all where they are few, and again the same."""
    from candide.engines.sample import sample
    from candide.events import Gaussian

    plan = Plan(("row",), (Part(Gaussian(), ("row",)),))
    counts = np.array([not is_absent(label) for label in trial.columns["y"]])
    if trial.weight:
        counts &= np.asarray(trial.columns["w"]) > 0
    want = np.asarray(trial.columns["row"])[counts].tolist()
    with trial.open() as source:
        source.materialise()
        source.read_numbers(["row", *([trial.weight] if trial.weight else [])])
        every, some, again = (
            sample(Rows(source, "y", trial.weight), plan, most).table["f0"].to_pylist() for most in (len(want), 9, 9)
        )
    assert sorted(every) == want, "of few rows not all were drawn, or others"
    assert len(set(some) & set(want)) == len(some) == 9, f"{some} are not 9 of the rows"
    assert some == again, f"{again} were drawn after {some}"


def scoring(trial: Trial) -> None:
    """It scores as the array engine does."""
    from candide.model.fitted import Fitted
    from candide.tasks.predict import predict

    fitted = Fitted(trial.census())
    want = predict(fitted, Table.of(trial.table), keep=["row"]).to_pydict()
    with trial.open() as source:
        table = predict(fitted, source, keep=["row"])
        found = (table.toArrow() if hasattr(table, "toArrow") else table).to_pydict()  # of Spark, a data frame
    assert list(found) == list(want), f"columns {list(found)} instead of {list(want)}"
    rows, wanted = (np.array(t["row"]).astype(int) for t in (found, want))  # a file without types gives text
    assert sorted(rows) == sorted(wanted), "rows are lost or doubled"
    for name in want:
        if name.startswith("p_"):
            same(np.array(found[name])[np.argsort(rows)], np.array(want[name])[np.argsort(wanted)], name, 1e-7)


def refusing(trial: Trial) -> None:
    """An infinity, and a target that is not there, are refused."""
    from candide.tasks.learn import learn

    def refused(columns: Mapping[str, Any], target: str) -> bool:
        try:
            with Trial(trial.engine, trial.make, columns).open() as source:
                learn(source, target)
        except InputError:
            return True
        return False

    x = np.arange(30.0)
    x[17] = np.inf
    assert refused({"x": x, "y": ["a", "b", "c"] * 10}, "y"), "an infinity was counted"
    assert refused(trial.columns, "no such column"), "a column that is not there was learned"


def learning(trial: Trial) -> None:
    """The default model, of pairs and more, is that of the array engine."""
    from candide.tasks.learn import learn
    from candide.tasks.predict import predict

    table = Table.of(trial.table)
    want = predict(learn(table, "y", drop=["row"]).fitted, table)
    with trial.open() as source:
        found = predict(learn(source, "y", drop=["row"]).fitted, table)
    for name in want.column_names[1:-1]:
        same(found[name].to_numpy(), want[name].to_numpy(), name, 1e-6)


ENGINE_LAWS = [reading, counting, folding, folding_by_a_key, sampling, scoring, refusing]


Case = tuple[Mapping[str, Any], Any]  # columns, and their event models


def _cases(seed: int) -> dict[str, Case]:
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
    return {
        "numbers": ({**base, "x": x, "whole": rng.integers(-5, 6, n)}, "auto"),
        "numbers far from zero": ({**base, "x": x + 1e8}, "auto"),
        "levels": ({**base, "word": word, "code": rng.integers(1, 4, n)}, {"code": "categorical"}),
        "gaps": ({**base, "x": np.where(holes, np.nan, x), "word": _without(word, holes)}, "auto"),
        "weights": ({**base, "x": x, "word": word, "w": rng.choice([0.0, 0.1, 1.0, 2.5], n)}, "auto"),
        "labels that are missing": ({**base, "y": _without(y, holes), "x": x, "word": word}, "auto"),
        "odd names": (
            {**base, 'say "x"; --': x, "Größe": rng.normal(size=n), "two words": word, "UPPER": word, "it's": word},
            "auto",
        ),
        "numbers as labels": ({**base, "y": kind, "x": x, "word": word}, "auto"),
        "every event model": (
            {
                **base,
                **{name: np.exp(x) for name in ("a", "b", "c")},
                "d": rng.poisson(2.0, n),
                "e": x,
                "f": x**2,
                "t": [" ".join(rng.choice(["ant", "bee", "cat", "dog"], 5)) for _ in range(n)],
            },
            {
                "a": "lognormal",
                "b": "exponential",
                "c": "bernoulli",
                "d": "poisson",
                ("e", "f"): "gaussian-full",
                "t": "text",
            },
        ),
    }


def _typed(seed: int) -> dict[str, Case]:
    """Tables of types that not every source has."""
    rng = np.random.default_rng(seed)
    n = 90
    kind, holes = rng.integers(0, 2, n), rng.random(n) < 0.2
    days = np.datetime64("2024-02-27") + rng.integers(0, 9, n) + 30 * kind
    times = days.astype("datetime64[us]") + rng.integers(0, 10**11, n)
    cents = np.array([Decimal(int(cent)) / 4 for cent in rng.integers(-200, 200, n)], object)
    flag = rng.random(n) < 0.3 + 0.4 * kind
    base = {"row": np.arange(n), "y": np.array(["no", "yes"], object)[kind]}
    gaps = {"day": _without(days.astype(object), holes), "price": _without(cents, holes)}
    return {
        "dates, decimals and booleans": ({**base, **gaps, "time": times, "flag": flag}, "auto"),
        "such levels": ({**base, **gaps, "flag": flag}, {"day": "categorical", "price": "categorical"}),
    }


def _many(seed: int) -> Case:
    """More levels than a query can name."""
    rng = np.random.default_rng(seed)
    n = 100_000
    words = np.char.add("word ", rng.permutation(n).astype(str)).astype(object)
    return {"row": np.arange(n), "y": rng.choice(["a", "b"], n), "word": words}, {"word": "categorical"}


def _pairs(seed: int) -> Case:
    """Two columns that tell nothing alone, and all together."""
    rng = np.random.default_rng(seed)
    n = 400
    a, b = rng.integers(0, 2, (2, n))
    words, labels = (np.array(both, object) for both in (["ant", "bee"], ["no", "yes"]))
    columns = {"one": words[a], "other": b + rng.normal(0.0, 0.1, n), "beside": rng.normal(size=n)}
    return {"row": np.arange(n), "y": labels[a ^ b], **columns}, "auto"


LARGE = {counting: _many, learning: _pairs}  # laws that are tried on one larger table


def _without(column: NDArray, holes: NDArray) -> NDArray:
    out = column.copy()
    out[holes] = None
    return out


def _same_census(found: Census, want: Census) -> None:
    assert found.labels.values == want.labels.values, f"labels {found.labels.values} instead of {want.labels.values}"
    assert found.n_rows == want.n_rows, f"{found.n_rows} rows instead of {want.n_rows}"
    same(found.class_weight, want.class_weight, "the weights of classes")
    found, want = align(found, want)
    for part, mine, theirs in zip(want.plan.parts, found.tallies, want.tallies, strict=True):
        try:
            same_state(mine, theirs, 1e-6)
        except AssertionError as error:
            raise AssertionError(f"columns {list(part.columns)} as {part.event.name}: {error}") from None


def _alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two rows hold the same; a number may come as a float."""
    return a.keys() == b.keys() and all(_plain(a[name]) == _plain(b[name]) for name in b)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
