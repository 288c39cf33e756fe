"""Base of all distributions: fitted parameters that score rows, explain a score feature by feature, and sample.

Axes are (row, class, feature). A distribution holds no state but its parameters: threads may share one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Csr, Floats, find_first, to_dense
from candide.distributions.arrays import ArrayRule, ArraySource, DistributionShape, read_array
from candide.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from candide.distributions.score_expression import Expression
    from candide.distributions.score_form import ScoreForm
    from candide.distributions.token_weights import TokenWeights

Names = Sequence[Any]  # of columns or levels
Rows = tuple[list[str], Floats]  # names of rows, and (row, class) values
MAX_SCORED_VALUE = 1e290  # of counts and amounts: log x! of this, of many columns, adds up to a number
_CHUNK_CELLS = 1 << 16  # (row, class, feature) cells worked at once: temporaries that stay in cache


@dataclass(frozen=True, eq=False)
class LevelScores:
    """The score of each level or cell; cells of one bin have the same score contrasts in all classes."""

    table: Floats  # (cells of all features, class)
    offsets: Codes  # (features + 1) feature j has the cells from offsets[j] to offsets[j + 1]
    bins: Codes  # (cells of all features) the bin of each, numbered within the feature

    @classmethod
    def from_table(cls, table: Floats, offsets: Codes) -> "LevelScores":
        """Every cell a bin of its own."""
        return cls(table, offsets, np.arange(len(table)) - np.repeat(offsets[:-1], np.diff(offsets)))

    def for_feature(self, j: int) -> tuple[Floats, Codes]:
        """(cell, class) the scores of one feature, and (cell,) the bin of each cell."""
        cells = slice(*self.offsets[j : j + 2])
        return self.table[cells], self.bins[cells]


class PickledWithoutCaches:
    """Leaves cached properties out of pickles and copies: they hold what only the kernels of this process can use."""

    def __getstate__(self) -> dict[str, Any]:
        kind = type(self)
        return {k: v for k, v in vars(self).items() if not isinstance(getattr(kind, k, None), cached_property)}


class Distribution(PickledWithoutCaches, ABC):
    """p(x | class) for every column of a block at once. An absent value adds 0."""

    name: ClassVar[str] = ""  # by which files know it; without one it cannot be saved
    nonlinear_reason: ClassVar[str] = (
        "its log-density is not linear in the value; choose another event model"  # why, remedy
    )
    block_kind: str = "numbers"  # what its rows are of: "numbers", "codes" of levels, or "documents"
    has_density: bool = True  # whether its scores are log-probabilities, so that there is a log p(x)

    min_batch_rows: ClassVar[int] = 64  # fewer rows are scored at a higher price each
    is_on_real_line: ClassVar[bool] = False  # whether it is of any number: then it may be of logs
    is_blas_bound: ClassVar[bool] = False  # whether rows are scored by products of matrices
    can_screen_classes: bool = False  # whether to find the largest class costs less than to score them all

    _shaped_like: ClassVar[str]  # the name of a (class, feature) array
    _saved_fields: ClassVar[dict[str, tuple[str, ArrayRule]]] = {}  # (class, feature): names in files, and values

    @property
    def _shape(self) -> tuple[int, int]:
        """How many classes and features it has."""
        return getattr(self, self._shaped_like).shape

    @property
    def n_classes(self) -> int:
        return self._shape[0]

    @property
    def n_features(self) -> int:
        return self._shape[1]

    # Scores

    @abstractmethod
    def add_log_prob(self, block: Block, out: Floats) -> int:
        """Add log p(row | class) into ``out`` (row, class); return how many values were absent, or kernels.INFINITE."""

    def add_for_argmax(self, block: Block, out: Floats) -> int:
        """As ``add_log_prob``, but only the largest class of each row must be right; the others may be anything below.

        Nothing may be added to ``out`` afterwards.
        """
        return self.add_log_prob(block, out)

    def impossible_rows(self, block: Block) -> "NDArray[np.bool_] | None":
        """(row,) whether a row holds a value that has probability 0 in every class, though it adds 0 to its scores.

        Such a value does not distinguish the classes, and the other columns decide; the density of the row is still 0.
        None where no value is impossible.
        """
        return None

    @abstractmethod
    def _contributions(self, x: NDArray) -> Floats:
        """What each feature adds, of a dense block without infinities."""

    def log_prob(self, block: Block) -> Floats:
        out = np.zeros((block.shape[0], self.n_classes))
        if self.add_log_prob(block, out) == kernels.INFINITE:
            refuse_infinite(to_dense(block))
        return out

    def contributions(self, block: Block) -> Floats:
        """(row, class, feature): what each feature adds to log_prob."""
        x = to_dense(block)
        refuse_infinite(x)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._contributions(x)

    # Weights on the features

    def with_feature_weights(self, weight: NDArray) -> "WeightedDistribution":
        """The distribution with the contribution of feature j multiplied by ``weight[j]``. It has no density."""
        return WeightedDistribution(self, np.asarray(weight, np.float64))

    def with_token_weights(self, token_weights: "TokenWeights", unknown_scores: Floats | None = None) -> "Distribution":
        """The distribution of documents with a weight for each token; ``unknown_scores`` where no token is known."""
        self._refuse("has no tokens that could have weights")

    def scale_tables(self, weight: Floats) -> "Distribution | None":
        """The weighted distribution as one with multiplied tables; None where that is not possible."""
        return None

    def add_weighted(self, block: Block, weight: Floats, out: Floats) -> int:
        """As ``add_log_prob``, with each feature's contribution multiplied by its weight."""
        x, n_absent = to_dense(block), 0
        for rows in chunk_slices(x, out):
            piece = x[rows]
            if np.isinf(piece).any():
                return kernels.INFINITE
            n_absent += int(np.isnan(piece).sum()) if piece.dtype.kind == "f" else int((piece < 0).sum())
            out[rows] += multiply_contributions(self.contributions(piece), weight).sum(axis=2)
        return n_absent

    @property
    def base_and_weights(self) -> "tuple[Distribution, Floats]":
        """The unweighted distribution, and the weight of each feature."""
        return self, np.ones(self.n_features)

    @property
    def generative_distribution(self) -> "Distribution":
        """The unweighted distribution, from which rows are expected and drawn."""
        return self.base_and_weights[0]

    # Descriptions

    def level_scores(self) -> "LevelScores | None":
        """The score of each level or cell of each feature; None where values are not levels."""
        return None

    def feature_importances(self) -> Floats | None:
        """(feature,) the mean absolute contribution to the log-odds of training rows; None where it is not kept."""
        return None

    def column_contributions(self, block: Block) -> "Iterator[Floats] | None":
        """For each row (column, class, feature) how much of a contribution each column has; None: not known."""
        return None

    def column_effects(self, j: int) -> Floats | None:
        """(code + 1, class, feature) what each value of a column contributes on average; None: not known."""
        return None

    def sample_block(self, y: Codes, rng: "np.random.Generator") -> Any:
        """A block of sampled rows, one for each class code in ``y``."""
        return self.sample(y, rng)

    @abstractmethod
    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """One row (row, feature) for each class code in ``y``."""

    @abstractmethod
    def parameters(self) -> dict[str, NDArray]:
        """The parameters shown to people: (class, feature) arrays by name."""

    def mean(self) -> Floats:
        """(class, feature) the expected value; NaN or infinite where it does not exist."""
        self._refuse("has no known mean")

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        """The description of feature j: names of rows, and (row, class) values.

        ``columns`` are the names of all features, ``levels`` those of the levels of feature j and ``weights`` their
        weights over all classes; at most ``max_rows`` levels or tokens are shown.
        """
        shown = {n: p for n, p in self.parameters().items() if p.shape == (self.n_classes, self.n_features)}
        return list(shown), np.array([p[:, j] for p in shown.values()]).reshape(-1, self.n_classes)

    def divergence(self, other: Self) -> Floats:
        """(class, feature) KL(self, other) + KL(other, self) in nats; of a group of columns one number a class."""
        self._refuse("has no divergence in closed form", "compare the estimates 'mean' or 'map'")

    def level_pairs(self, other: Self) -> "Iterator[LevelComparison]":
        """The probabilities of levels or tokens in both distributions, class by class; nothing where it has none."""
        return iter(())

    def form(self) -> "ScoreForm | None":
        """The score as a polynomial of the columns; None where it is not one, for the ``nonlinear_reason``."""
        return None

    def score_expression(self, x: "Expression") -> "Expression":
        """The score of values ``x`` as an expression, which every export target prints.

        What is the same in every class may be left out. Raise an InputError with the reason if there is no expression.
        """
        raise InputError(f"this score cannot be written out: {self.nonlinear_reason}")

    def to_export_dict(self) -> dict[str, Any]:
        """The steps of the score, and the parameters by name; their last axis is the class."""
        from candide.distributions.score_expression import X, to_export_dict

        return to_export_dict(self.score_expression(X))

    # Files

    @property
    def inner_distribution(self) -> "Distribution | None":
        """The distribution that this one wraps, if any."""
        return None

    def arrays(self) -> dict[str, NDArray]:
        """The state except what is in the plan: arrays of float64, int64, int32 or bytes with at most two axes."""
        if not self._saved_fields:
            self._refuse("cannot be saved without its counts", "save the model with detail='tally'")
        return {name: getattr(self, field) for field, (name, _) in self._saved_fields.items()}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: "Distribution | None" = None) -> Self:
        """The distribution of ``arrays``; raise an InputError that names a wrong array and what was expected."""
        if not cls._saved_fields:
            raise InputError(f"a {cls.__name__} cannot be made from arrays")
        size, fields = (shape.n_classes, shape.n_features), cls._saved_fields.items()
        return cls(**{field: read_array(arrays, name, size, rule) for field, (name, rule) in fields})

    def _refuse(self, what: str, remedy: str = "") -> NoReturn:
        raise InputError(f"a {type(self).__name__} {what}", value=type(self).__name__, remedy=remedy)


def from_base(name: str) -> Any:
    """An attribute or method of the distribution that is wrapped."""
    return property(attrgetter(f"base.{name}"))


class WrappedDistribution(Distribution):
    """Shared by distributions that are made from another one."""

    base: Distribution
    n_classes = from_base("n_classes")
    n_features = from_base("n_features")
    is_blas_bound = from_base("is_blas_bound")

    @property
    def inner_distribution(self) -> Distribution:
        return self.base


@dataclass(frozen=True, eq=False)
class WeightedDistribution(WrappedDistribution):
    """Its result is a score, not a log-probability. Rows are those of the unweighted distribution."""

    base: Distribution
    weight: Floats  # (feature)

    name: ClassVar[str] = "weighted"
    has_density = False

    def __post_init__(self) -> None:
        if self.weight.shape != (self.base.n_features,) or not np.isfinite(self.weight).all():
            what = f"{self.base.n_features} features, and weights of shape {self.weight.shape}"
            raise InputError(what, value=self.weight, remedy="pass a finite number for each")

    @cached_property
    def _scaled_base(self) -> Distribution | None:
        return self.base.scale_tables(self.weight)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        if self._scaled_base is not None:
            return self._scaled_base.add_log_prob(block, out)
        return self.base.add_weighted(block, self.weight, out)

    def contributions(self, block: Block) -> Floats:
        return multiply_contributions(self.base.contributions(block), self.weight)

    def _contributions(self, x: NDArray) -> Floats:
        return multiply_contributions(self.base._contributions(x), self.weight)

    def with_feature_weights(self, weight: NDArray) -> "WeightedDistribution":
        return WeightedDistribution(self.base, self.weight * weight)

    @property
    def base_and_weights(self) -> tuple[Distribution, Floats]:
        return self.base, self.weight

    def level_scores(self) -> LevelScores | None:
        return self._scaled_level_scores

    @cached_property
    def _scaled_level_scores(self) -> LevelScores | None:  # explanations ask for it column by column
        base = self.base.level_scores()
        if base is None:
            return None
        weight = np.repeat(self.weight, np.diff(base.offsets))[:, None]
        return replace(base, table=multiply_contributions(base.table, weight))

    block_kind = from_base("block_kind")
    nonlinear_reason = from_base("nonlinear_reason")
    generative_distribution = from_base("generative_distribution")
    sample = from_base("sample")
    sample_block = from_base("sample_block")
    mean = from_base("mean")
    parameters = from_base("parameters")
    describe = from_base("describe")

    def form(self) -> "ScoreForm | None":
        form = self.base.form()
        return form and form.scale_units(self.weight)

    def to_export_dict(self) -> dict[str, Any]:
        return {**self.base.to_export_dict(), "weight": self.weight}

    def arrays(self) -> dict[str, NDArray]:
        return {"weight": self.weight}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        if base is None:
            raise InputError("the weighted distribution is missing")
        return cls(base, read_array(arrays, "weight", (base.n_features,)))


def multiply_contributions(contributions: Floats, weight: Floats) -> Floats:
    """contributions * weight, with 0 * -inf = 0."""
    with np.errstate(invalid="ignore"):
        return np.where(weight == 0, 0.0, contributions * weight)


def symmetric_divergence(p: Floats, q: Floats) -> Floats:
    """(p - q) log(p / q): what a level, a word or a rate adds to the symmetric divergence; 0 where they are equal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p == q, 0.0, (p - q) * (np.log(p) - np.log(q)))


def chunk_slices(x: NDArray, out: Floats) -> Iterator[slice]:
    step = max(1, _CHUNK_CELLS // max(1, out.shape[1] * x.shape[1]))
    return (slice(start, start + step) for start in range(0, len(x), step))


def to_dense_floats(block: Block) -> NDArray:
    """The block as the dense floats that kernels read: float32 and float64 stay what they are."""
    if isinstance(block, Csr):
        what = "sparse rows where dense ones are needed: zeros are values here"
        raise InputTypeError(what, remedy="pass X.toarray()")
    return block if block.dtype in (np.float32, np.float64) else block.astype(np.float64)


def mask_absent(x: NDArray, contributions: Floats) -> Floats:
    """(row, class, feature) contributions, 0 where the (row, feature) value is absent."""
    return np.where(np.isnan(x)[:, None, :], 0.0, contributions)


def refuse_infinite(x: NDArray) -> None:
    if first := find_first(x, np.isinf):
        row, column, value = first
        remedy = "pass NaN for absent"
        raise InputError(f"{value} is not a finite number", column=column, row=row, value=value, remedy=remedy)


@dataclass(frozen=True, eq=False)
class LevelComparison:
    """The probabilities of levels or tokens in one class, in two distributions."""

    feature: Codes  # (item) the column
    level: Codes  # (item) which of its levels, or of the tokens of both
    before: Floats  # (item)
    after: Floats  # (item)
    divergence: Floats  # (item) contribution of each to the divergence
    rest_divergence: float = 0.0  # contribution of all others
    is_seen: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None  # (item) whether each distribution has seen it
    token_key: Callable[[int], bytes] | None = None  # the token at an index, where the names are not in the plan
