"""Token scores: a score of documents that is linear in the (transformed) occurrences of tokens.

With ``x`` the occurrences of the tokens of a document, the score of a class is

    constant + shared * sum(unit * x) + scale * sum(common * x) + sum over cells of delta * x
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    read_optional_array,
)
from candide.distributions.base import Distribution, LevelComparison, Names, Rows, symmetric_divergence
from candide.distributions.documents import DocumentDistribution, TokenCells
from candide.distributions.score_expression import Expression, joint
from candide.encoding.tokens import COUNT_MODES, Tokens, score_documents
from candide.errors import InputError
from candide.kernels import text as kernel
from candide.kernels.text_reference import occurrence_weights

if TYPE_CHECKING:
    from candide.distributions.score_form import PerTokenForm
    from candide.distributions.token_weights import TokenWeights
    from candide.distributions.weighted_tokens import WeightedTokens

_COUNT_MODE_RULE = ArrayRule("a known count mode", lambda a: np.isin(a, list(COUNT_MODES.values())))


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
    def n_classes(self) -> int:
        return len(self.shared)

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

    def token_probabilities(self, token_indices: Codes) -> Floats | None:
        return np.exp(self.token_scores(token_indices, np.ones(len(token_indices)))) if self.mean_length else None

    def with_token_weights(
        self, token_weights: "TokenWeights", unknown_scores: Floats | None = None
    ) -> "WeightedTokens":
        from candide.distributions.weighted_tokens import WeightedTokens

        weighting = token_weights.weighting
        base = self if weighting.count_mode < 0 else replace(self, count_mode=weighting.count_mode)
        weight = token_weights.lookup(self.cells.letters, self.cells.starts)
        return WeightedTokens(base, weight, weighting.power, unknown_scores)

    def scale_tables(self, weight: Floats) -> "TokenScores":
        w = float(weight[0])
        cells = replace(self.cells, value=self.cells.value * w)
        by_class = {name: a * w for name in ("scale", "constant") if (a := getattr(self, name)) is not None}
        only_known = self.only_known if w else None  # 0 * -inf = 0
        return replace(self, cells=cells, shared=self.shared * w, only_known=only_known, mean_length=0, **by_class)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        return self.scale is None

    def form(self) -> "PerTokenForm":
        """Linear in the occurrences; hashed tokens are known by the place of their bucket."""
        from candide.distributions.score_form import PerTokenForm

        weight = self.token_scores(np.arange(self.cells.n_tokens), np.ones(self.cells.n_tokens))
        if self.only_known is not None:
            seen = np.zeros(weight.shape, bool)
            seen[np.repeat(np.arange(len(weight)), np.diff(self.cells.ends)), self.cells.column] = True
            weight[~seen & self.only_known] = -np.inf
        constant = np.zeros(self.n_classes) if self.constant is None else self.constant
        return PerTokenForm(constant[:, None], weight.T, distribution=self, count_mode=self.count_mode)

    def score_expression(self, x: Expression, **parameters: Any) -> Expression:
        arrays = {name: getattr(self, name) for name in ("unit", "common", "scale", "constant", "only_known")}
        given = {name: array for name, array in arrays.items() if array is not None}
        return joint(
            "tokens", **self._export_tokens(), shared=self.shared, count_mode=self.count_mode, **given, **parameters
        )

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """Documents of ``mean_length`` tokens in no order: the model has neither lengths nor orders."""
        if not self.mean_length or self.tokens.bits:
            return super().sample(y, rng)
        cells, _ = self.cells.sort_tokens()  # the same documents, whatever the order of tokens
        n_tokens = cells.n_tokens
        if not n_tokens:
            return np.full((len(y), 1), "", object)
        unseen = self.shared if self.only_known is None else np.where(self.only_known, -np.inf, self.shared)
        log_prob = np.tile(unseen[:, None], (1, n_tokens))
        token = np.repeat(np.arange(n_tokens), np.diff(cells.ends))
        log_prob[cells.column, token] = self.shared[cells.column] + cells.value
        p = np.exp(log_prob)
        p /= p.sum(axis=1, keepdims=True)
        out, names = np.empty((len(y), 1), object), cells.token_texts(np.arange(n_tokens))
        for row, c in enumerate(np.asarray(y).tolist()):
            out[row, 0] = " ".join(names[i] for i in rng.choice(n_tokens, self.mean_length, p=p[c]))
        return out

    def divergence(self, other: Self) -> Floats:
        """(class, 1) of the distribution of one token, or of the presence of all."""
        return np.array([[pair.divergence.sum() + pair.rest_divergence] for pair in self.level_pairs(other)])

    def level_pairs(self, other: Self) -> "Iterator[LevelComparison]":
        """The probabilities of the tokens seen in a class, over the vocabulary of both distributions."""
        mine, theirs = self.cells, other.cells
        places, new = kernel.unite(mine.letters, mine.starts, theirs.letters, theirs.starts)
        n_tokens = mine.n_tokens + len(new)
        known = np.arange(n_tokens) < mine.n_tokens, np.zeros(n_tokens, bool)
        known[1][places] = True

        def key(i: int) -> bytes:
            return mine.key(i) if i < mine.n_tokens else theirs.key(int(new[i - mine.n_tokens]))

        sides = [(self, *mine.split_by_class(self.n_classes)), (other, *theirs.split_by_class(other.n_classes))]
        sides[1] = (other, [places[tokens] for tokens in sides[1][1]], sides[1][2])
        for c in range(self.n_classes):
            seen = np.union1d(sides[0][1][c], sides[1][1][c])
            p, q = (s._class_token_probabilities(c, seen, t[c], values[c], n_tokens) for s, t, values in sides)
            divergence = symmetric_divergence(p, q)
            if self.constant is not None:
                divergence += symmetric_divergence(1.0 - p, 1.0 - q)
            rest = float(divergence[-1] * (n_tokens - len(seen))) if len(seen) < n_tokens else 0.0
            which = known[0][seen], known[1][seen]
            yield LevelComparison(np.zeros_like(seen), seen, p[:-1], q[:-1], divergence[:-1], rest, which, key)

    def _class_token_probabilities(self, c: int, seen: Codes, tokens: Codes, values: Floats, n_tokens: int) -> Floats:
        """(seen token + 1) the probability of each token in a class and, last, of an unseen one."""
        if self.scale is not None or self.unit is not None:
            self._refuse("without probabilities has no divergence", "compare Text(model='multinomial')")
        unseen = -np.inf if self.only_known is not None and self.only_known[c] else self.shared[c]
        logs = np.full(len(seen) + 1, unseen)
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

    def describe_weighted(self, token_weights: Floats, max_rows: int) -> tuple[list[str], Floats]:
        """The same with weighted tokens."""
        if self.mean_length == 0 or self.tokens.bits:  # hashed, or without probabilities
            return [], np.empty((0, self.n_classes))
        n, each = self.cells.n_tokens, max(1, max_rows // max(1, self.n_classes))
        weight = self.token_scores(np.arange(n), np.ones(n))  # (token, class)
        best: dict[int, None] = {}
        for c in range(self.n_classes if n else 0):
            others = np.delete(weight, c, axis=1).max(axis=1, initial=-np.inf)
            gain = token_weights * (weight[:, c] - others)
            best |= dict.fromkeys(np.argsort(-gain, kind="stable")[:each].tolist())
        return self.cells.token_texts(np.array(list(best), np.intp)), np.exp(weight[list(best)])

    def arrays(self) -> dict[str, NDArray]:
        """The tokens in ascending order."""
        cells, order = self.cells.sort_tokens()
        by_token = {name: a[order] for name in ("unit", "common") if (a := getattr(self, name)) is not None}
        by_class = {name: a for name in ("scale", "constant") if (a := getattr(self, name)) is not None}
        only = {} if self.only_known is None else {"only_known": self.only_known.astype(np.uint8)}
        numbers = number_as_array(self.count_mode, "count_mode") | number_as_array(self.mean_length, "mean_length")
        return {**cells.arrays(), "shared": self.shared, **by_token, **by_class, **only, **numbers}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        cells = TokenCells.from_arrays(arrays, shape)
        k, n = (shape.n_classes,), (cells.n_tokens,)
        optional = {name: read_optional_array(arrays, name, n) for name in ("unit", "common")}
        optional |= {name: read_optional_array(arrays, name, k) for name in ("scale", "constant")}
        if (optional["common"] is None) != (optional["scale"] is None):
            raise InputError("of the arrays 'common' and 'scale' there is one without the other")
        known = read_optional_array(arrays, "only_known", k, FLAGS, np.uint8)
        return cls(
            shape.tokens,
            cells,
            read_array(arrays, "shared", k),
            read_array(arrays, "count_mode", (1,), _COUNT_MODE_RULE, np.int64).item(),
            **optional,
            only_known=None if known is None else known != 0,
            mean_length=read_document_length(arrays, "mean_length") or 0,
        )
