"""A fitted model as plots need it: features by name, p(features | class), and errors for what cannot be drawn."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import row_numbers
from candide.data.documents import Documents
from candide.data.table import Name, Table
from candide.distributions import Distribution
from candide.errors import InputError, InputTypeError, unknown_name_error
from candide.events import Support
from candide.explain.terms import level_names, list_terms
from candide.model.feature_selection import rank_columns_by_evidence
from candide.model.fitted import FittedModel
from candide.model.model import Model
from candide.model.plan import PlanPart

_MAX_BLOCK_VALUES = 1 << 22  # values of a block scored at once
_DRAWS_PER_CLASS = 2000  # where only a sample shows the range of a distribution


@dataclass(frozen=True, eq=False)
class Drawable:
    fitted: FittedModel

    @classmethod
    def from_model(cls, model: Any) -> "Drawable":
        if isinstance(model, Drawable):
            return model
        fitted, name = getattr(model, "fitted_", model), type(model).__name__
        if isinstance(fitted, FittedModel):
            return cls(fitted)
        if hasattr(model, "fit"):
            is_candide = type(model).__module__.startswith("candide.")
            why = "is not fitted yet; call fit(X, y)" if is_candide else "is not an estimator of Candide; fit one"
            raise InputError(f"cannot draw this {name}: it {why}")
        raise InputTypeError(f"cannot draw {name}; pass a fitted estimator of Candide")

    @property
    def labels(self) -> tuple[Any, ...]:
        return self.fitted.labels.values

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.fitted.plan.columns

    @cached_property
    def column_places(self) -> dict[Name, tuple[int, int]]:
        """The part that holds the distribution of each column, and its position there."""
        parts = [(i, part) for i, part in enumerate(self.fitted.plan.parts) if not part.is_joint_term]
        return {name: (i, j) for i, part in parts for j, name in enumerate(part.columns)}

    @cached_property
    def seen_columns(self) -> set[Name]:
        """The columns with a value in the counts; without counts, all but those without a level."""
        parts = [part for part in self.fitted.plan.parts if not part.is_joint_term]
        if not self.fitted.has_counts:
            pairs = (pair for part in parts for pair in zip(part.columns, part.encodings, strict=True))
            return set(self.columns) - {name for name, encoding in pairs if encoding.n_levels == 0}
        counts: Any = self.fitted.selected_counts
        tallies = zip(counts.plan.parts, counts.tallies, strict=True)
        weights = [tally.n.sum(axis=0) for part, tally in tallies if not part.is_joint_term]
        return {name for part, n in zip(parts, weights, strict=True) for name in np.array(part.columns, object)[n > 0]}

    @cached_property
    def ranked_columns(self) -> Sequence[tuple[Name, Any]]:
        """Columns with their evidence, or the importance of their terms, strongest first; empty where not known."""
        if self.fitted.term_weights is not None:
            terms = list_terms(self.fitted)
            return [(term.columns[0], term.importance) for term in terms if len(term.columns) == 1]
        if self.fitted.has_counts:
            return rank_columns_by_evidence(self.fitted.selected_counts)
        return list((self.fitted.column_evidence or {}).items())

    @property
    def strongest_columns(self) -> list[Name]:
        """The columns with a value in the counts, strongest first; in their order where that is not known."""
        names = dict.fromkeys([*(name for name, _ in self.ranked_columns), *self.columns])
        return [name for name in names if name in self.seen_columns]

    @property
    def class_proportions(self) -> NDArray:
        """(classes,) The class probabilities, without the intercepts of weights."""
        if self.fitted.term_weights is not None:
            return self.fitted.class_proportions
        p = np.exp(self.fitted.model.log_prior - self.fitted.model.log_prior.max())
        return p / p.sum()

    def part_of(self, feature: Name) -> tuple[PlanPart, Distribution, int]:
        """Return the part that holds a feature, its unweighted distribution, and the position of the feature."""
        i, j = self.column_places[feature]
        return self.fitted.plan.parts[i], self.fitted.model.distributions[i].base_and_weights[0], j

    def resolve_column(self, feature: Any) -> Name:
        """Return a column by its name, by its position, or by its position as text where columns have no names."""
        if feature in self.column_places:
            return feature
        if isinstance(feature, str) and feature.isdecimal() and int(feature) in self.column_places:
            return int(feature)
        if isinstance(feature, int | np.integer) and 0 <= feature < len(self.columns):
            return self.columns[feature]
        raise unknown_name_error("feature", feature, self.columns[:40])

    def resolve_columns(self, features: Any) -> list[Name]:
        return [self.resolve_column(f) for f in ([features] if isinstance(features, str | int) else features)]

    def resolve_number_column(self, feature: Any) -> Name:
        name = self.resolve_column(feature)
        if name in self.number_columns:
            return name
        levels = self.levels(name)
        kind = "documents" if levels is None else f"categories ({_list_names(levels, 3)})"
        remedy = f"name one of {_list_names(self.number_columns)}" if self.number_columns else "this model has none"
        raise InputError(f"it holds {kind}, and this picture needs numbers", column=name, remedy=remedy)

    @cached_property
    def number_columns(self) -> list[Name]:
        """The numeric columns, including binned ones."""
        return [name for name in self.columns if self.part_of(name)[1].block_kind == "numbers" or self.is_binned(name)]

    def is_binned(self, feature: Name) -> bool:
        part, distribution, j = self.part_of(feature)
        return distribution.block_kind == "codes" and not part.encodings[j].is_read_as_text

    def levels(self, feature: Name) -> list[str] | None:
        """Return the names of a column's levels, or of its bins; None where it has none."""
        part, distribution, j = self.part_of(feature)
        is_coded = distribution.block_kind == "codes"
        return list(level_names(part, distribution, j, self.fitted.dates)) if is_coded else None

    def _level_scores(self, feature: Name) -> tuple[NDArray, NDArray]:
        _, distribution, j = self.part_of(feature)
        scores = distribution.level_scores()
        assert scores is not None
        return scores.for_feature(j)

    def level_codes(self, feature: Name, codes: NDArray) -> NDArray:
        """Return codes of a column as those of its levels or bins: -1 for missing, past the last for unseen."""
        _, bins = self._level_scores(feature)
        unseen = bins.max(initial=-1) + 1
        return np.append(bins, [unseen, -1])[np.where(codes < 0, -1, np.minimum(codes, len(bins)))]

    def level_probabilities(self, feature: Name) -> NDArray:
        table, bins = self._level_scores(feature)
        out = np.zeros((bins.max(initial=-1) + 1, len(self.labels)))
        np.add.at(out, bins, np.exp(table))
        return out

    def resolve_column_pair(self, features: Sequence[Any] | None) -> tuple[Name, Name]:
        n = len(self.columns)
        if n < 2:
            only = repr(self.columns[0])
            raise InputError(f"this picture is of two features, and the model has one, {only}; draw its densities")
        if features is None and n != 2:
            raise InputError(
                f"the model has {n} features: {_list_names(self.columns)}; name two of them: features=(a, b), or "
                "--feature A --feature B"
            )
        features = self.columns if features is None else features
        chosen = [features] if isinstance(features, str | int) else list(features)
        if len(chosen) != 2:
            raise InputError(f"this picture is of two features, and {len(chosen)} were named; name two")
        a, b = map(self.resolve_number_column, chosen)
        if a == b:
            raise InputError(f"the two features of this picture are the same, {a!r}; name two")
        return a, b

    def two_strongest_columns(
        self, is_usable: Callable[["Drawable", Name], bool], kind: str
    ) -> tuple[tuple[Name, Name], str]:
        """Return the two strongest numeric columns of some ``kind``, and a note that names them."""
        usable = [n for n in self.strongest_columns if n in self.number_columns and is_usable(self, n)]
        if len(usable) < 2:
            has = f"one, {usable[0]!r}" if usable else "none"
            raise InputError(f"this picture is of two {kind}, and the model has {has}; draw its densities")
        a, b = usable[:2]
        why = "the strongest" if self.ranked_columns else "the first"
        note = f"drawn over {a!r} and {b!r}, {why} of {len(usable)} {kind}; name others: --feature A --feature B"
        return (a, b), note

    def class_code(self, value: Any) -> int:
        for values in (list(self.labels), [str(label) for label in self.labels]):
            if value in values:
                return values.index(value)
        raise unknown_name_error("class", value, self.labels)

    def class_codes(self, values: Any) -> list[int]:
        """Return the codes of a class or of several."""
        is_single = isinstance(values, str) or not hasattr(values, "__len__")
        return [self.class_code(value) for value in ([values] if is_single else values)]

    def positive_class(self, positive: Any, what: str = "this is drawn for one class against the others") -> int:
        """Return the code of the class that is drawn against the others, by default the second of two."""
        k = len(self.labels)
        if k < 2 or (positive is None and k > 2):
            problem = f"{what}, and the model has {k}: {_list_names(self.labels)}"
            raise InputError(problem, value=self.labels, remedy="name one: positive=..., or --class NAME")
        return 1 if positive is None else self.class_code(positive)

    def read_table(self, X: Any) -> Table:
        """Return rows as a table of the model's columns; an array is taken by position."""
        has_columns = hasattr(X, "keys") or (hasattr(X, "columns") and hasattr(X, "shape"))
        if self.is_text_model and not isinstance(X, Table) and not has_columns:
            documents = Documents.from_column(X)
            return Table(self.columns, len(documents), {self.columns[0]: documents})
        table = Table.from_data(X)
        is_unnamed = all(isinstance(n, int) for n in table.names)
        if is_unnamed and table.names != self.columns and len(table.names) == len(self.columns):
            columns = {name: table.column(i) for i, name in enumerate(self.columns)}
            return Table(self.columns, table.n_rows, columns)
        return table

    @property
    def is_text_model(self) -> bool:
        return len(self.columns) == 1 and self.fitted.model.distributions[0].block_kind == "documents"

    def column_values(self, X: Any, feature: Name) -> NDArray:
        table = self.read_table(X)
        if feature not in table.names:
            raise InputError(f"column {feature!r} is missing; the rows have {_list_names(table.names)}")
        if table.is_sparse:
            rows, mine = table.source, table.source.indices == table.names.index(feature)
            out = np.zeros(table.n_rows)
            out[row_numbers(rows)[mine]] = rows.data[mine]
            return out
        return np.asarray(table.numbers((feature,)), np.float64)[:, 0]

    def are_dates(self, X: Any, features: Sequence[Name]) -> list[bool]:
        """Return which columns of rows hold dates; a model has only days since 1970."""
        table = None if X is None else self.read_table(X)
        if table is None or table.is_sparse:
            return [False] * len(features)
        return [_is_date(table.column(name)) for name in features]

    def label_codes(self, y: Any, n_rows: int) -> NDArray[np.intp]:
        codes = self.fitted.labels.match_codes(y)
        if len(codes) != n_rows:
            rows, labels = formatting.format_count(n_rows), formatting.format_count(len(codes), "label")
            raise InputError(f"{rows} and {labels}; pass one label per row")
        unknown = np.flatnonzero(codes == len(self.labels))
        if len(unknown):
            raise unknown_name_error("class in y", list(y)[unknown[0]], self.labels)
        return codes

    def joint_log_likelihood(self, X: Any) -> NDArray:
        return self.fitted.apply(Model.joint_log_likelihood, self.read_table(X))

    def joint_score(self, features: Sequence[Name], values: NDArray) -> NDArray:
        """(row, class) Return log p(features, class), or the weighted score: all other columns are missing."""
        if self.fitted.term_weights is None:
            return self.log_density(features, values) + self.fitted.model.log_prior
        scores = []
        for rows in _batches(values, len(self.columns)):
            columns: dict[Name, Any] = {name: np.full(len(rows), None, object) for name in self.columns}
            columns |= {name: np.full(len(rows), np.nan) for name in self.number_columns}
            columns |= {name: rows[:, k] for k, name in enumerate(features)}
            scores.append(self.fitted.apply(Model.joint_log_likelihood, Table.from_data(columns)))
        return np.concatenate(scores)

    def log_density(self, features: Sequence[Name], values: NDArray) -> NDArray:
        """(row, class) Return log p(features | class) of ``values`` (row, feature): all other features are missing."""
        total, places = np.zeros((len(values), len(self.labels))), [self.column_places[name] for name in features]
        for i in dict.fromkeys(i for i, _ in places):
            distribution = self.fitted.model.distributions[i].base_and_weights[0]
            width = len(self.fitted.plan.parts[i].columns)
            missing, kind = (-1, np.int32) if distribution.block_kind == "codes" else (np.nan, np.float64)
            scores = []
            for rows in _batches(values, width):
                block: NDArray = np.full((len(rows), width), missing, kind)
                for k, (part, j) in enumerate(places):
                    if part == i:
                        block[:, j] = rows[:, k]
                scores.append(distribution.log_prob(block))
            total += np.concatenate(scores)
        return total

    def plot_range(self, feature: Name, X: Any = None) -> tuple[float, float]:
        """Return the range to draw: the data with a margin, otherwise where the classes have their mass."""
        x = np.empty(0) if X is None else self.column_values(X, feature)
        x = x[np.isfinite(x)]
        if len(x):
            low, high = float(x.min()), float(x.max())
            margin = 0.08 * (high - low) or max(abs(low), 1.0) * 0.5
            low, high = low - margin, high + margin
        else:
            low, high = self._distribution_range(feature)
        support = self.part_of(feature)[0].event.support or Support()
        high = min(high, support.high)
        return max(low, 1e-6 * high if support.is_open else support.low), high

    def _distribution_range(self, feature: Name) -> tuple[float, float]:
        part, distribution, j = self.part_of(feature)
        params, k = distribution.parameters(), len(self.labels)
        if self.is_binned(feature):
            low, high = part.encodings[j].decode(np.array([0, (part.encodings[j].n_levels or 1) - 1])).tolist()
        else:
            for centre, spread in (("mean", "sd"), ("loc", "scale")):
                if centre in params and spread in params:
                    at, sd = params[centre][:, j], params[spread][:, j]
                    return float((at - 3.5 * sd).min()), float((at + 3.5 * sd).max())
            y = np.repeat(np.arange(k), _DRAWS_PER_CLASS)
            try:
                drawn = distribution.sample(y, np.random.default_rng(0))[:, j].reshape(k, _DRAWS_PER_CLASS)
            except InputError as error:
                raise InputError(f"column {feature!r}: pass rows, which set the range to draw ({error})") from None
            lows, highs = np.quantile(drawn, [0.003, 0.997], axis=1)
            low, high = float(lows.min()), float(highs.max())
        margin = 0.05 * (high - low) or 1.0
        return low - margin, high + margin


def check_labels(X: Any, y: Any) -> None:
    if y is not None and X is None:
        raise InputError("y was given without X, whose rows it labels; pass both, or neither")


def _batches(values: NDArray, width: int) -> Iterator[NDArray]:
    step = max(1, _MAX_BLOCK_VALUES // width)
    return (values[start : start + step] for start in range(0, len(values), step))


def _is_date(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind == "M"
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _list_names(names: Sequence[Any], limit: int = 20) -> str:
    more = f", and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(map(str, names[:limit])) + more
