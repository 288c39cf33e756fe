"""Term scores: a score of documents that is linear in the (weighed) occurrences of terms.

With ``x`` the weighed occurrences of the terms of a document, the score of a class is

    constant + shared * sum(unit * x) + scale * sum(common * x) + sum over cells of delta * x
"""

from collections.abc import Iterator, Sequence
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
from candide.distributions.base import Distribution, symmetric_divergence
from candide.distributions.documents import DocumentDistribution, TokenCells
from candide.distributions.score_expression import Expression, joint
from candide.encoding.tokens import COUNT_MODES, Tokens, score_documents
from candide.errors import InputError
from candide.kernels import text as kernel
from candide.kernels.text_reference import occurrence_weights

if TYPE_CHECKING:
    from candide.distributions.pairs import LevelComparison
    from candide.distributions.score_form import PerTokenForm
    from candide.distributions.token_weights import TokenWeights
    from candide.distributions.weighted_tokens import WeightedTokens

_COUNT_MODE_RULE = ArrayRule("a known manner of counting", lambda a: np.isin(a, list(COUNT_MODES.values())))


@dataclass(frozen=True, eq=False)
class TokenScores(DocumentDistribution):
    tokens: Tokens
    cells: TokenCells  # delta
    shared: Floats  # (class,) what every known term adds
    count_mode: int  # what several occurrences in a document count
    unit: Floats | None = None  # (term,) the weight of an occurrence; None: one
    common: Floats | None = None  # (term,) what a term adds in every class alike, times ``scale``
    scale: Floats | None = None  # (class,)
    constant: Floats | None = None  # (class,) what any document adds: the terms it might have had
    only_known: NDArray[np.bool_] | None = None  # (class,) where a term never met is impossible
    mean_length: int = 0  # terms in a sampled document; 0: the weights are no probabilities

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
            met, ones = np.zeros_like(out), np.ones_like(cells.value)
            known = score_documents(
                cells.hash_table, documents, self.tokens, (cells.ends, cells.column, ones, None, None), met, 0
            )
            out[(known[:, :1] - met > 0.5) & self.only_known] = -np.inf
        absent = documents.absent_mask()
        if self.constant is not None:
            out += np.where(absent[:, None], 0.0, self.constant)
        return int(absent.sum())

    def token_scores(self, token_indices: Codes, occurrences: Floats) -> Floats:
        at, owner = self.cells.find_cells(token_indices)
        out = np.tile(self.shared, (len(token_indices), 1)) * (
            1.0 if self.unit is None else self.unit[token_indices][:, None]
        )
        out[owner, self.cells.column[at]] += self.cells.value[at]
        if self.common is not None and self.scale is not None:
            out += self.common[token_indices][:, None] * self.scale
        return out * occurrence_weights(self.count_mode, occurrences)[:, None]

    def token_probabilities(self, token_indices: Codes) -> Floats | None:
        return np.exp(self.token_scores(token_indices, np.ones(len(token_indices)))) if self.mean_length else None

    def with_token_weights(
        self, token_weights: "TokenWeights", unknown_scores: Floats | None = None
    ) -> "WeightedTokens":
        """The law in which every term has a weight of its own."""
        from candide.distributions.weighted_tokens import WeightedTokens

        own = (
            self
            if token_weights.weighting.count_mode < 0
            else replace(self, count_mode=token_weights.weighting.count_mode)
        )
        return WeightedTokens(
            own,
            token_weights.lookup(self.cells.letters, self.cells.starts),
            token_weights.weighting.power,
            unknown_scores,
        )

    def scale_tables(self, weight: Floats) -> "TokenScores":
        """One feature, and so one weight for all."""
        w = float(weight[0])
        cells = replace(self.cells, value=self.cells.value * w)
        by_class = {name: a * w for name in ("scale", "constant") if (a := getattr(self, name)) is not None}
        only_known = self.only_known if w else None  # 0 * -inf = 0
        return replace(self, cells=cells, shared=self.shared * w, only_known=only_known, mean_length=0, **by_class)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        return self.scale is None

    def form(self) -> "PerTokenForm":
        """Linear in the weighed occurrences; hashed terms are known by the place of their bucket."""
        from candide.distributions.score_form import PerTokenForm

        weight = self.token_scores(np.arange(self.cells.n_tokens), np.ones(self.cells.n_tokens))
        if self.only_known is not None:
            met = np.zeros(weight.shape, bool)
            met[np.repeat(np.arange(len(weight)), np.diff(self.cells.ends)), self.cells.column] = True
            weight[~met & self.only_known] = -np.inf
        constant = np.zeros(self.n_classes) if self.constant is None else self.constant
        return PerTokenForm(constant[:, None], weight.T, distribution=self, count_mode=self.count_mode)

    def score_expression(self, x: Expression, **parameters: Any) -> Expression:
        arrays = {name: getattr(self, name) for name in ("unit", "common", "scale", "constant", "only_known")}
        given = {name: array for name, array in arrays.items() if array is not None}
        return joint(
            "tokens", **self._export_tokens(), shared=self.shared, count_mode=self.count_mode, **given, **parameters
        )

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """Documents of ``mean_length`` words in no order: the model says nothing of lengths and orders."""
        if not self.mean_length or self.tokens.bits:
            return super().sample(y, rng)
        cells, _ = self.cells.sort_tokens()  # the same documents, whatever the order in which terms were met
        n_terms = cells.n_tokens
        if not n_terms:  # nothing can be said but nothing
            return np.full((len(y), 1), "", object)
        unmet = self.shared if self.only_known is None else np.where(self.only_known, -np.inf, self.shared)
        log_prob = np.tile(unmet[:, None], (1, n_terms))
        term = np.repeat(np.arange(n_terms), np.diff(cells.ends))
        log_prob[cells.column, term] = self.shared[cells.column] + cells.value
        p = np.exp(log_prob)
        p /= p.sum(axis=1, keepdims=True)
        out, names = np.empty((len(y), 1), object), cells.token_texts(np.arange(n_terms))
        for row, c in enumerate(np.asarray(y).tolist()):
            out[row, 0] = " ".join(names[i] for i in rng.choice(n_terms, self.mean_length, p=p[c]))
        return out

    def divergence(self, other: Self) -> Floats:
        """(class, 1) of the law of one term, or of all terms present or absent."""
        return np.array([[pair.divergence.sum() + pair.rest_divergence] for pair in self.level_pairs(other)])

    def level_pairs(self, other: Self) -> "Iterator[LevelComparison]":
        """The shares of the terms met in a class, of one vocabulary that has the terms of both laws."""
        from candide.distributions.pairs import LevelComparison

        mine, theirs = self.cells, other.cells
        places, new = kernel.unite(mine.letters, mine.starts, theirs.letters, theirs.starts)
        n_terms = mine.n_tokens + len(new)
        known = np.arange(n_terms) < mine.n_tokens, np.zeros(n_terms, bool)
        known[1][places] = True

        def key(i: int) -> bytes:
            return mine.key(i) if i < mine.n_tokens else theirs.key(int(new[i - mine.n_tokens]))

        sides = [(self, *mine.split_by_class(self.n_classes)), (other, *theirs.split_by_class(other.n_classes))]
        sides[1] = (other, [places[terms] for terms in sides[1][1]], sides[1][2])
        for c in range(self.n_classes):
            met = np.union1d(sides[0][1][c], sides[1][1][c])
            p, q = (
                law._class_token_probabilities(c, met, terms[c], values[c], n_terms) for law, terms, values in sides
            )
            by = (
                symmetric_divergence(p, q)
                if self.constant is None
                else symmetric_divergence(p, q) + symmetric_divergence(1.0 - p, 1.0 - q)
            )
            rest = float(by[-1] * (n_terms - len(met))) if len(met) < n_terms else 0.0
            which = known[0][met], known[1][met]
            yield LevelComparison(np.zeros_like(met), met, p[:-1], q[:-1], by[:-1], rest, which, key)

    def _class_token_probabilities(self, c: int, seen: Codes, terms: Codes, values: Floats, n_terms: int) -> Floats:
        """(term met + 1) the share of each term in a class and, last, of one that was not met."""
        if self.scale is not None or self.unit is not None:
            self._refuse("whose weights are no shares has no divergence", "compare Text(model='multinomial')")
        unmet = -np.inf if self.only_known is not None and self.only_known[c] else self.shared[c]
        logs = np.full(len(seen) + 1, unmet)
        logs[np.searchsorted(seen, terms)] = self.shared[c] + values
        if self.constant is not None:  # present or absent: these are log-odds
            return 1.0 / (1.0 + np.exp(-logs))
        p = np.exp(logs)
        return p / (p[:-1].sum() + p[-1] * (n_terms - len(seen)))

    def describe(
        self,
        j: int,
        columns: Sequence[Any] = (),
        levels: Sequence[str] = (),
        level_weights: Any = None,
        max_rows: int = 12,
    ) -> tuple[list[str], Floats]:
        """Of each class the terms that weigh most beside the next class, as the shares they stand for."""
        return self.describe_weighted(np.ones(self.cells.n_tokens), max_rows)

    def describe_weighted(self, token_weights: Floats, max_rows: int) -> tuple[list[str], Floats]:
        """The same where each term counts as often as ``heard`` says."""
        if self.mean_length == 0 or self.tokens.bits:  # hashed, or weights that are no shares
            return [], np.empty((0, self.n_classes))
        n, each = self.cells.n_tokens, max(1, max_rows // max(1, self.n_classes))
        weight = self.token_scores(np.arange(n), np.ones(n))  # (term, class)
        best: dict[int, None] = {}
        for c in range(self.n_classes if n else 0):
            others = np.delete(weight, c, axis=1).max(axis=1, initial=-np.inf)
            gain = token_weights * (weight[:, c] - others)
            best |= dict.fromkeys(np.argsort(-gain, kind="stable")[:each].tolist())
        return self.cells.token_texts(np.array(list(best), np.intp)), np.exp(weight[list(best)])

    def arrays(self) -> dict[str, NDArray]:
        """The terms in ascending order."""
        cells, order = self.cells.sort_tokens()
        by_term = {name: a[order] for name in ("unit", "common") if (a := getattr(self, name)) is not None}
        by_class = {name: a for name in ("scale", "constant") if (a := getattr(self, name)) is not None}
        only = {} if self.only_known is None else {"only_known": self.only_known.astype(np.uint8)}
        numbers = number_as_array(self.count_mode, "manner") | number_as_array(self.mean_length, "mean_length")
        return {**cells.arrays(), "shared": self.shared, **by_term, **by_class, **only, **numbers}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        cells = TokenCells.from_arrays(arrays, shape)
        k, n = (shape.n_classes,), (cells.n_tokens,)
        by_term = {name: read_optional_array(arrays, name, n) for name in ("unit", "common")}
        by_class = {name: read_optional_array(arrays, name, k) for name in ("scale", "constant")}
        if (by_term["common"] is None) != (by_class["scale"] is None):
            raise InputError("of the arrays 'common' and 'scale' there is one without the other")
        known = read_optional_array(arrays, "only_known", k, FLAGS, np.uint8)
        manner = read_array(arrays, "manner", (1,), _COUNT_MODE_RULE, np.int64).item()
        return cls(
            shape.tokens,
            cells,
            read_array(arrays, "shared", k),
            manner,
            **by_term,
            **by_class,
            only_known=None if known is None else known != 0,
            mean_length=read_document_length(arrays, "mean_length") or 0,
        )
