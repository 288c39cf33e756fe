"""Drawable: one view of whatever is drawn, an estimator, a drop-in or the contents of a model file.

It knows the features by name, gives p(features | class) with all others absent, and says in words what cannot be
drawn.

>>> from candide.demo import garden
>>> drawable = Drawable.from_model(FittedModel(garden()))
>>> drawable.labels, drawable.resolve_number_column("height_cm")
(('lavender', 'sage', 'thyme'), 'height_cm')
>>> drawable.resolve_number_column("soil")
Traceback (most recent call last):
    ...
candide.errors.InputError: column 'soil': it holds categories (chalk, clay, sand), and this picture needs numbers; \
name one of height_cm, leaf_mm, flowers
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data import value_matching
from candide.data.blocks import row_numbers
from candide.data.documents import Documents
from candide.data.table import Name, Table
from candide.distributions import Distribution
from candide.errors import InputError, InputTypeError, unknown_name_error
from candide.events import Support
from candide.explain.axes import level_names
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.model import Model
from candide.model.plan import PlanPart

_MAX_BLOCK_VALUES = 1 << 22  # values of a block scored at once
_DRAWS_PER_CLASS = 2000  # per class, where only a sample tells how far a distribution reaches


@dataclass(frozen=True, eq=False)
class Drawable:
    """A fitted model, seen as what pictures ask of it."""

    fitted: FittedModel
    counts: ModelCounts | None = None  # of its columns, where counts are at hand

    @classmethod
    def from_model(cls, model: Any) -> "Drawable":
        """An estimator or a Fitted."""
        if isinstance(model, Drawable):
            return model
        held = getattr(model, "fitted_", model)
        if isinstance(held, FittedModel):
            return cls(held, held.selected_counts if held.has_counts else None)
        if hasattr(model, "fit"):
            known = type(model).__module__.startswith("candide.")
            why = "is not fitted yet; call fit(X, y)" if known else "is none of Candide's estimators; fit one of those"
            raise InputError(f"cannot draw this {type(model).__name__}: it {why}")
        raise InputTypeError(f"cannot draw {type(model).__name__}; pass a fitted estimator of Candide")

    @property
    def labels(self) -> tuple[Any, ...]:
        return self.fitted.labels.values

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.fitted.plan.columns

    @cached_property
    def column_places(self) -> dict[Name, tuple[int, int]]:
        """Of each column the part that holds its own law, and its position there."""
        own = [(i, part) for i, part in enumerate(self.fitted.plan.parts) if not part.is_joint_term]
        return {name: (i, j) for i, part in own for j, name in enumerate(part.columns)}

    @cached_property
    def seen_columns(self) -> set[Name]:
        """The columns of which a value was counted; where no counts are at hand, all but those without a level."""
        parts = [part for part in self.fitted.plan.parts if not part.is_joint_term]
        if self.counts is None:
            held = [pair for part in parts for pair in zip(part.columns, part.encodings, strict=True)]
            return set(self.columns) - {name for name, encoding in held if encoding.n_levels == 0}
        every: Any = zip(self.counts.plan.parts, self.counts.tallies, strict=True)
        weights = [tally.n.sum(axis=0) for part, tally in every if not part.is_joint_term]
        return {name for part, n in zip(parts, weights, strict=True) for name in np.array(part.columns, object)[n > 0]}

    @property
    def class_proportions(self) -> NDArray:
        """(classes,) probabilities of the classes, without the biases of weights."""
        if self.fitted.term_weights is not None:
            return self.fitted.class_proportions
        p = np.exp(self.fitted.model.log_prior - self.fitted.model.log_prior.max())
        return p / p.sum()

    def part_of(self, feature: Name) -> tuple[PlanPart, Distribution, int]:
        """The part that holds a feature, its own distribution, without a weight, and the feature's position."""
        i, j = self.column_places[feature]
        return self.fitted.plan.parts[i], self.fitted.model.distributions[i].base_and_weights[0], j

    # Which features

    def resolve_column(self, feature: Any) -> Name:
        """A column by its name, by its position, or by its position as text where columns have no names."""
        if feature in self.column_places:
            return feature
        if isinstance(feature, str) and feature.isdecimal() and int(feature) in self.column_places:
            return int(feature)
        if isinstance(feature, int | np.integer) and 0 <= feature < len(self.columns):
            return self.columns[feature]
        raise unknown_name_error("feature", feature, self.columns[:40])

    def resolve_number_column(self, feature: Any) -> Name:
        """A column of numbers."""
        name = self.resolve_column(feature)
        if name in self.number_columns:
            return name
        levels = self.levels(name)
        what = "documents" if levels is None else f"categories ({_listed(levels, 3)})"
        numbers = [str(n) for n in self.number_columns]
        remedy = f"name one of {_listed(numbers, 20)}" if numbers else "this model has none"
        raise InputError(f"it holds {what}, and this picture needs numbers", column=name, remedy=remedy)

    @cached_property
    def number_columns(self) -> list[Name]:
        """The columns of numbers, those among them that are counted in bins."""
        return [name for name in self.columns if self.part_of(name)[1].block_kind == "numbers" or self.is_binned(name)]

    def is_binned(self, feature: Name) -> bool:
        """Whether a column of numbers is counted in the cells of a grid."""
        part, law, j = self.part_of(feature)
        return law.block_kind == "codes" and not part.encodings[j].is_read_as_text

    def levels(self, feature: Name) -> list[str] | None:
        """The names of a column's levels, or of its bins; None where it has none."""
        part, law, j = self.part_of(feature)
        return list(level_names(part, law, j, self.fitted.dates)) if law.block_kind == "codes" else None

    def level_codes(self, feature: Name, codes: NDArray) -> NDArray:
        """Codes of a column as those of its levels or bins: -1 of what is absent, past the last of what is new."""
        _, law, j = self.part_of(feature)
        answers = law.level_scores()
        assert answers is not None
        bins = answers.for_feature(j)[1]
        new = bins.max(initial=-1) + 1
        return np.append(bins, [new, -1])[np.where(codes < 0, -1, np.minimum(codes, len(bins)))]

    def level_probabilities(self, feature: Name) -> NDArray:
        """(level or bin, class) its probability in each class."""
        _, law, j = self.part_of(feature)
        answers = law.level_scores()
        assert answers is not None
        table, bins = answers.for_feature(j)
        out = np.zeros((bins.max(initial=-1) + 1, len(self.labels)))
        np.add.at(out, bins, np.exp(table))
        return out

    def resolve_column_pair(self, features: Sequence[Any] | None) -> tuple[Name, Name]:
        """The two columns of numbers of a picture in the plane."""
        if len(self.columns) < 2:
            raise InputError(
                f"this picture is of two features, and the model has one, {self.columns[0]!r}; draw its densities"
            )
        if features is None:
            if len(self.columns) != 2:
                raise InputError(
                    f"the model has {len(self.columns)} features: {_listed([str(n) for n in self.columns], 20)}; name "
                    "two of them: features=(a, b), or --feature A --feature B"
                )
            features = self.columns
        chosen = [features] if isinstance(features, str | int) else list(features)
        if len(chosen) != 2:
            raise InputError(f"this picture is of two features, and {len(chosen)} were named; name two")
        a, b = self.resolve_number_column(chosen[0]), self.resolve_number_column(chosen[1])
        if a == b:
            raise InputError(f"the two features of this picture are the same, {a!r}; name two")
        return a, b

    def class_code(self, value: Any) -> int:
        """The code of a class; of a class that is a number also by its text."""
        for spelled in (lambda v: v, str):
            values = [spelled(v) for v in self.labels]
            if value in values:
                return values.index(value)
        raise unknown_name_error("class", value, self.labels)

    # Rows

    def read_table(self, X: Any) -> Table:
        """Rows as a table of the model's columns; an array is taken by position."""
        if self.is_text_model and not isinstance(X, Table) and not _has_columns(X):
            documents = Documents.from_column(X)
            return Table(self.columns, len(documents), {self.columns[0]: documents})
        table = Table.from_data(X)
        unnamed = all(isinstance(n, int) for n in table.names)
        if unnamed and table.names != self.columns and len(table.names) == len(self.columns):
            columns = {name: table.column(i) for i, name in enumerate(self.columns)}
            return Table(self.columns, table.n_rows, columns)
        return table

    @property
    def is_text_model(self) -> bool:
        """Whether all that the model knows is one column of documents."""
        return len(self.columns) == 1 and self.fitted.model.distributions[0].block_kind == "documents"

    def column_values(self, X: Any, feature: Name) -> NDArray:
        """One column of numbers of some rows, NaN where absent."""
        table = self.read_table(X)
        if feature not in table.names:
            raise InputError(
                f"column {feature!r} is missing; the rows have {_listed([str(n) for n in table.names], 20)}"
            )
        if table.is_sparse:
            rows, mine = table.source, table.source.indices == table.names.index(feature)
            out = np.zeros(table.n_rows)
            out[row_numbers(rows)[mine]] = rows.data[mine]
            return out
        return np.asarray(table.numbers((feature,)), np.float64)[:, 0]

    def are_dates(self, X: Any, features: Sequence[Name]) -> list[bool]:
        """Which columns of some rows hold dates, of which a model knows only that they are days since 1970."""
        table = None if X is None else self.read_table(X)
        if table is None or table.is_sparse:
            return [False] * len(features)
        return [_is_date(table.column(name)) for name in features]

    def label_codes(self, y: Any, n_rows: int) -> NDArray[np.intp]:
        """Class codes of labels, -1 where there is none."""
        codes = value_matching.match_codes(self.fitted.labels, y)
        if len(codes) != n_rows:
            raise InputError(
                f"{formatting.format_count(n_rows)} and {formatting.format_count(len(codes), 'label')}; "
                "pass one label a row"
            )
        strange = np.flatnonzero(codes == len(self.labels))
        if len(strange):
            raise unknown_name_error("class in y", list(y)[strange[0]], self.labels)
        return codes

    def joint_log_likelihood(self, X: Any) -> NDArray:
        """log p(x, class), (row, class), of whole rows."""
        return self.fitted.apply(Model.joint_log_likelihood, self.read_table(X))

    # Distributions

    def joint_score(self, features: Sequence[Name], values: NDArray) -> NDArray:
        """log p(features, class), (row, class), or what voices come to, of ``values``: other columns are absent."""
        if self.fitted.term_weights is None:
            return self.log_density(features, values) + self.fitted.model.log_prior
        step = max(1, _MAX_BLOCK_VALUES // len(self.columns))
        scored = []
        for start in range(0, len(values), step):
            rows = values[start : start + step]
            columns: dict[Name, Any] = {name: self._missing_values(name, len(rows)) for name in self.columns}
            columns |= {name: rows[:, k] for k, name in enumerate(features)}
            scored.append(self.fitted.apply(Model.joint_log_likelihood, Table.from_data(columns)))
        return np.concatenate(scored)

    def _missing_values(self, feature: Name, n: int) -> NDArray:
        return np.full(n, np.nan) if feature in self.number_columns else np.full(n, None, object)

    def log_density(self, features: Sequence[Name], values: NDArray) -> NDArray:
        """log p(features | class), (row, class), of ``values`` (row, feature): all other features are absent."""
        out = np.zeros((len(values), len(self.labels)))
        for i in dict.fromkeys(self.column_places[name][0] for name in features):
            part, law = self.fitted.plan.parts[i], self.fitted.model.distributions[i].base_and_weights[0]
            mine = [
                (k, self.column_places[name][1]) for k, name in enumerate(features) if self.column_places[name][0] == i
            ]
            width = len(part.columns)
            step = max(1, _MAX_BLOCK_VALUES // width)
            for start in range(0, len(values), step):
                rows = values[start : start + step]
                absent, kind = (-1, np.int32) if law.block_kind == "codes" else (np.nan, np.float64)
                block: NDArray = np.full((len(rows), width), absent, kind)
                for k, j in mine:
                    block[:, j] = rows[:, k]
                out[start : start + step] += law.log_prob(block)
        return out

    def plot_range(self, feature: Name, X: Any = None) -> tuple[float, float]:
        """Where a feature is worth drawing: the data with a margin, else where the classes have their mass."""
        low, high = self._data_range(feature, X)
        support = self.part_of(feature)[0].event.support or Support()
        high = min(high, support.high)
        return max(low, 1e-6 * high if support.is_open else support.low), high

    def _data_range(self, feature: Name, X: Any) -> tuple[float, float]:
        if X is not None:
            x = self.column_values(X, feature)
            x = x[np.isfinite(x)]
            if len(x):
                low, high = float(x.min()), float(x.max())
                margin = 0.08 * (high - low) or max(abs(low), 1.0) * 0.5
                return low - margin, high + margin
        return self._distribution_range(feature)

    def _distribution_range(self, feature: Name) -> tuple[float, float]:
        part, law, j = self.part_of(feature)
        if self.is_binned(feature):
            ends = part.encodings[j].decode(np.array([0, (part.encodings[j].n_levels or 1) - 1]))
            margin = 0.05 * float(ends[1] - ends[0]) or 1.0
            return float(ends[0]) - margin, float(ends[1]) + margin
        params = law.parameters()
        for centre, spread in (("mean", "sd"), ("loc", "scale")):
            if centre in params and spread in params:
                at, sd = params[centre][:, j], params[spread][:, j]
                return float((at - 3.5 * sd).min()), float((at + 3.5 * sd).max())
        y = np.repeat(np.arange(len(self.labels)), _DRAWS_PER_CLASS)
        try:
            drawn = law.sample(y, np.random.default_rng(0))[:, j].reshape(len(self.labels), _DRAWS_PER_CLASS)
        except InputError as error:
            raise InputError(f"column {feature!r}: pass rows to say where to draw it ({error})") from None
        low, high = np.quantile(drawn, [0.003, 0.997], axis=1)
        margin = 0.05 * float(high.max() - low.min()) or 1.0
        return float(low.min()) - margin, float(high.max()) + margin


def refuse_labels_without_rows(X: Any, y: Any) -> None:
    """Labels say of which class the rows are; without rows they say nothing."""
    if y is not None and X is None:
        raise InputError("y was given without X, whose rows it labels; pass both, or neither")


def _is_date(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind == "M"
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _has_columns(X: Any) -> bool:
    return hasattr(X, "keys") or (hasattr(X, "columns") and hasattr(X, "shape"))


def _listed(names: Sequence[str], limit: int) -> str:
    return ", ".join(names[:limit]) + (f", and {len(names) - limit} more" if len(names) > limit else "")
