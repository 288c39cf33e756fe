"""Scores of documents that are linear in the (transformed) occurrences of tokens, without and with token weights.

With ``x`` the occurrences of the tokens of a document, the score of a class is

    constant + shared * sum(unit * x) + scale * sum(common * x) + sum over cells of delta * x

With ``w`` the weight of a token and ``t`` its score, a class has under token weights the score

    sum(w * x * t) / sum(x) ** power

Tokens of a document are not independent: n of them are worth less than n times one. The power is how much less; 0 is
naive Bayes, 1/2 the growth of a random walk. The result is a score, not a log-probability.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Codes, Floats
from candide.data.documents import Documents
from candide.distributions.arrays import (
    FLAGS,
    ArrayRule,
    ArraySource,
    DistributionShape,
    number_as_array,
    read_array,
    read_document_length,
    read_number,
    read_optional_array,
)
from candide.distributions.base import (
    Distribution,
    LevelComparison,
    Names,
    Rows,
    WrappedDistribution,
    from_base,
    symmetric_divergence,
)
from candide.distributions.documents import DocumentDistribution, TokenCells
from candide.distributions.score_expression import Expression, joint
from candide.encoding.tokens import COUNT_MODES, Tokens, score_documents
from candide.errors import InputError
from candide.kernels import text as kernel
from candide.kernels.text import occurrence_weights

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm
    from candide.distributions.token_weights import TokenWeights

_COUNT_MODE_RULE = ArrayRule("a known count mode", lambda a: np.isin(a, list(COUNT_MODES.values())))
_POWER_RULE = ArrayRule("a number from 0 to 1", lambda a: (a >= 0) & (a <= 1))


@dataclass(frozen=True, eq=False)
class TokenScores(DocumentDistribution):
    tokens: Tokens
    cells: TokenCells  # delta
    shared: Floats  # (class,) added by every known token
    count_mode: int  # how repeated tokens in a document count
    unit: Floats | None = None  # (token,) the weight of an occurrence; None: one
    common: Floats | None = None  # (token,) added in every class, times ``scale``
    scale: Floats | None = None  # (class,)
    constant: Floats | None = None  # (class,) added by any document: for absent tokens
    only_known: NDArray[np.bool_] | None = None  # (class,) where an unseen token is impossible
    mean_length: int = 0  # tokens in a sampled document; 0: scores are not log-probabilities

    name: ClassVar[str] = "token_scores"

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.shared), 1

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        return self.scale is None

    def _given(self, *names: str) -> dict[str, NDArray]:
        """The optional arrays that there are."""
        return {name: array for name in names if (array := getattr(self, name)) is not None}

    def add_log_prob(self, block: Block, out: Floats) -> int:
        documents, cells = Documents.from_column(block), self.cells
        table = cells.ends, cells.column, cells.value, self.unit, self.common
        sums = score_documents(cells.hash_table, documents, self.tokens, table, out, self.count_mode)
        out += sums[:, :1] * self.shared
        if self.scale is not None:
            out += sums[:, 1:] * self.scale
        if self.only_known is not None:
            seen, table = np.zeros_like(out), (cells.ends, cells.column, np.ones_like(cells.value), None, None)
            known = score_documents(cells.hash_table, documents, self.tokens, table, seen, 0)
            out[(known[:, :1] - seen > 0.5) & self.only_known] = -np.inf
        absent = documents.absent_mask()
        if self.constant is not None:
            out += np.where(absent[:, None], 0.0, self.constant)
        return int(absent.sum())

    def token_scores(self, token_indices: Codes, occurrences: Floats) -> Floats:
        at, owner = self.cells.find_cells(token_indices)
        unit = 1.0 if self.unit is None else self.unit[token_indices][:, None]
        out = np.tile(self.shared, (len(token_indices), 1)) * unit
        out[owner, self.cells.column[at]] += self.cells.value[at]
        if self.common is not None and self.scale is not None:
            out += self.common[token_indices][:, None] * self.scale
        return out * occurrence_weights(self.count_mode, occurrences)[:, None]

    def _single_scores(self) -> Floats:
        """(token, class) the score of one occurrence of each token."""
        return self.token_scores(np.arange(self.cells.n_tokens), np.ones(self.cells.n_tokens))

    def token_probabilities(self, token_indices: Codes) -> Floats | None:
        return np.exp(self.token_scores(token_indices, np.ones(len(token_indices)))) if self.mean_length else None

    def with_token_weights(
        self, token_weights: "TokenWeights", unknown_scores: Floats | None = None
    ) -> "WeightedTokens":
        weighting = token_weights.weighting
        base = self if weighting.count_mode < 0 else replace(self, count_mode=weighting.count_mode)
        weight = token_weights.lookup(self.cells.letters, self.cells.starts)
        return WeightedTokens(base, weight, weighting.power, unknown_scores)

    def scale_tables(self, weight: Floats) -> "TokenScores":
        w = float(weight[0])
        cells = replace(self.cells, value=self.cells.value * w)
        by_class: Any = {name: a * w for name, a in self._given("scale", "constant").items()}
        only_known = self.only_known if w else None  # 0 * -inf = 0
        return replace(self, cells=cells, shared=self.shared * w, only_known=only_known, mean_length=0, **by_class)

    def form(self) -> "ScoreForm":
        """Linear in the occurrences; hashed tokens are known by the place of their bucket."""
        from candide.distributions.score_form import TokenForm

        weight = self._single_scores()
        if self.only_known is not None:
            seen = np.zeros(weight.shape, bool)
            seen[np.repeat(np.arange(len(weight)), np.diff(self.cells.ends)), self.cells.column] = True
            weight[~seen & self.only_known] = -np.inf
        constant = np.zeros(self.n_classes) if self.constant is None else self.constant
        return TokenForm(constant[:, None], weight.T, distribution=self, count_mode=self.count_mode)

    def score_expression(self, x: Expression, **parameters: Any) -> Expression:
        arrays = {**self._export_tokens(), "shared": self.shared, "count_mode": self.count_mode}
        return joint(
            "tokens", **arrays, **self._given("unit", "common", "scale", "constant", "only_known"), **parameters
        )

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """Documents of ``mean_length`` tokens in no order: the model has neither lengths nor orders."""
        if not self.mean_length or self.tokens.bits:
            return super().sample(y, rng)
        cells, _ = self.cells.sort_tokens()  # the same documents, whatever the order of tokens
        n_tokens = cells.n_tokens
        if not n_tokens:
            return np.full((len(y), 1), "", object)
        log_prob = np.tile(self._unseen_scores()[:, None], (1, n_tokens))
        token = np.repeat(np.arange(n_tokens), np.diff(cells.ends))
        log_prob[cells.column, token] = self.shared[cells.column] + cells.value
        p = np.exp(log_prob)
        p /= p.sum(axis=1, keepdims=True)
        out, names = np.empty((len(y), 1), object), cells.token_texts(np.arange(n_tokens))
        for row, c in enumerate(np.asarray(y).tolist()):
            out[row, 0] = " ".join(names[i] for i in rng.choice(n_tokens, self.mean_length, p=p[c]))
        return out

    def _unseen_scores(self) -> Floats:
        """(class,) the score of a token that is unseen in the class."""
        return self.shared if self.only_known is None else np.where(self.only_known, -np.inf, self.shared)

    def divergence(self, other: Self) -> Floats:
        """(class, 1) of the distribution of one token, or of the presence of all."""
        return np.array([[pair.divergence.sum() + pair.rest_divergence] for pair in self.level_pairs(other)])

    def level_pairs(self, other: Self) -> "Iterator[LevelComparison]":
        """The probabilities of the tokens seen in a class, over the vocabulary of both distributions."""
        a, b = self.cells, other.cells
        places, new = kernel.unite(a.letters, a.starts, b.letters, b.starts)
        n_tokens = a.n_tokens + len(new)
        in_both = np.arange(n_tokens) < a.n_tokens, np.zeros(n_tokens, bool)
        in_both[1][places] = True

        def key(i: int) -> bytes:
            return a.key(i) if i < a.n_tokens else b.key(int(new[i - a.n_tokens]))

        sides = [(self, *a.split_by_class(self.n_classes)), (other, *b.split_by_class(other.n_classes))]
        sides[1] = (other, [places[tokens] for tokens in sides[1][1]], sides[1][2])
        for c in range(self.n_classes):
            seen = np.union1d(sides[0][1][c], sides[1][1][c])
            p, q = (s._class_token_probabilities(c, seen, t[c], values[c], n_tokens) for s, t, values in sides)
            divergence = symmetric_divergence(p, q)
            if self.constant is not None:
                divergence += symmetric_divergence(1.0 - p, 1.0 - q)
            rest = float(divergence[-1] * (n_tokens - len(seen))) if len(seen) < n_tokens else 0.0
            which = in_both[0][seen], in_both[1][seen]
            yield LevelComparison(np.zeros_like(seen), seen, p[:-1], q[:-1], divergence[:-1], rest, which, key)

    def _class_token_probabilities(self, c: int, seen: Codes, tokens: Codes, values: Floats, n_tokens: int) -> Floats:
        """(seen token + 1) the probability of each token in a class and, last, of an unseen one."""
        if self.scale is not None or self.unit is not None:
            self._refuse("without probabilities has no divergence", "compare Text(model='multinomial')")
        logs = np.full(len(seen) + 1, self._unseen_scores()[c])
        logs[np.searchsorted(seen, tokens)] = self.shared[c] + values
        if self.constant is not None:  # present or absent: these are log-odds
            return 1.0 / (1.0 + np.exp(-logs))
        p = np.exp(logs)
        return p / (p[:-1].sum() + p[-1] * (n_tokens - len(seen)))

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        """The tokens that most raise the log-odds of each class against the next, with their probabilities."""
        return self.describe_weighted(np.ones(self.cells.n_tokens), max_rows)

    def describe_weighted(self, token_weights: Floats, max_rows: int) -> Rows:
        """The same with weighted tokens."""
        if self.mean_length == 0 or self.tokens.bits:  # hashed, or without probabilities
            return [], np.empty((0, self.n_classes))
        scores, per_class = self._single_scores(), max(1, max_rows // max(1, self.n_classes))
        best: dict[int, None] = {}
        for c in range(self.n_classes if len(scores) else 0):
            others = np.delete(scores, c, axis=1).max(axis=1, initial=-np.inf)
            gain = token_weights * (scores[:, c] - others)
            best |= dict.fromkeys(np.argsort(-gain, kind="stable")[:per_class].tolist())
        return self.cells.token_texts(np.array(list(best), np.intp)), np.exp(scores[list(best)])

    def arrays(self) -> dict[str, NDArray]:
        cells, order = self.cells.sort_tokens()
        by_token = {name: a[order] for name, a in self._given("unit", "common").items()}
        only = {name: a.astype(np.uint8) for name, a in self._given("only_known").items()}
        numbers = number_as_array(self.count_mode, "count_mode") | number_as_array(self.mean_length, "mean_length")
        by_class = {"shared": self.shared, **self._given("scale", "constant")}
        return {**cells.arrays(), **by_token, **by_class, **only, **numbers}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        cells = TokenCells.from_arrays(arrays, shape)
        k, n = (shape.n_classes,), (cells.n_tokens,)
        sizes = {"unit": n, "common": n, "scale": k, "constant": k}
        optional = {name: read_optional_array(arrays, name, size) for name, size in sizes.items()}
        if (optional["common"] is None) != (optional["scale"] is None):
            raise InputError("of the arrays 'common' and 'scale' there is one without the other")
        only_known = read_optional_array(arrays, "only_known", k, FLAGS, np.uint8)
        return cls(
            shape.tokens,
            cells,
            read_array(arrays, "shared", k),
            read_array(arrays, "count_mode", (1,), _COUNT_MODE_RULE, np.int64).item(),
            **optional,
            only_known=None if only_known is None else only_known != 0,
            mean_length=read_document_length(arrays, "mean_length") or 0,
        )


@dataclass(frozen=True, eq=False)
class WeightedTokens(WrappedDistribution, DocumentDistribution):
    base: TokenScores
    weight: Floats  # (token,)
    power: float
    unknown_scores: Floats | None = None  # (class,) the score of a document without known tokens; None: 0

    name: ClassVar[str] = "weighted_tokens"
    has_density = False
    nonlinear_reason: ClassVar[str] = "each word counts less in a longer document; use weights=None"
    tokens = from_base("tokens")
    cells = from_base("cells")
    generative_distribution = from_base("generative_distribution")
    token_probabilities = from_base("token_probabilities")
    sample = from_base("sample")  # weights are about the class, not about the documents

    def __post_init__(self) -> None:
        if self.base._given("constant", "common", "only_known"):
            raise InputError("these scores are not sums over tokens alone", remedy="use Text(model='multinomial')")

    @cached_property
    def _table(self) -> tuple[Any, ...]:
        """What the kernels read: the weighted cells, the weights, and ones that add up to the length."""
        cells, weight = self.cells, self.weight if self.base.unit is None else self.weight * self.base.unit
        by_cell = np.repeat(self.weight, np.diff(cells.ends))
        return cells.ends, cells.column, cells.value * by_cell, weight, np.ones(len(weight))

    def add_log_prob(self, block: Block, out: Floats) -> int:
        documents, scores = Documents.from_column(block), np.zeros(out.shape)
        sums = score_documents(self.cells.hash_table, documents, self.tokens, self._table, scores, self.base.count_mode)
        scores += sums[:, :1] * self.base.shared
        scores *= self._length_factor(sums[:, 1:])
        if self.unknown_scores is not None:
            scores[sums[:, 1] == 0] += self.unknown_scores
        out += scores
        return int(documents.absent_mask().sum())

    def _length_factor(self, length: Floats) -> Floats:
        return np.where(length > 0, np.maximum(length, 1e-300) ** -self.power, 1.0)

    def token_scores(self, token_indices: Codes, occurrences: Floats) -> Floats:
        return self.base.token_scores(token_indices, occurrences) * self.weight[token_indices][:, None]

    def token_weights(self, letters: NDArray[np.uint8], starts: NDArray[np.int64]) -> Floats:
        place = self.cells.hash_table.positions(letters, starts)
        return np.where(place >= 0, self.weight[np.maximum(place, 0)], 0.0)

    def document_contributions(self, token_indices: Codes, occurrences: Floats) -> Floats:
        length = occurrence_weights(self.base.count_mode, occurrences).sum(keepdims=True)
        return self.token_scores(token_indices, occurrences) * self._length_factor(length)

    def scale_tables(self, weight: Floats) -> "WeightedTokens":
        w = float(weight[0])
        unknown = None if self.unknown_scores is None else self.unknown_scores * w
        return replace(self, weight=self.weight * w, unknown_scores=unknown)

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        """The tokens that most raise the log-odds of each class, by their unweighted probabilities."""
        return self.base.describe_weighted(self.weight, max_rows)

    def _unknown(self) -> dict[str, Floats]:
        return {} if self.unknown_scores is None else {"unknown_scores": self.unknown_scores}

    def score_expression(self, x: Expression) -> Expression:
        return self.base.score_expression(x, token_weights=self.weight, power=self.power, **self._unknown())

    def arrays(self) -> dict[str, NDArray]:
        """The weights in the ascending order of their tokens."""
        weight = self.weight[self.cells.sort_tokens()[1]]
        return {"weight": weight, **number_as_array(self.power, "power"), **self._unknown()}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        if not isinstance(base, TokenScores):
            raise InputError("the scores of weighted tokens are missing")
        weight, power = read_array(arrays, "weight", (base.cells.n_tokens,)), read_number(arrays, "power", _POWER_RULE)
        return cls(base, weight, power, read_optional_array(arrays, "unknown_scores", (shape.n_classes,)))
