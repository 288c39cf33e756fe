"""Term scores: a score of documents that is linear in the (weighed) occurrences of terms.

With ``x`` the weighed occurrences of the terms of a document, the score of a class is

    constant + shared * sum(unit * x) + scale * sum(common * x) + sum over cells of delta * x
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.distributions.arrays import FLAGS, Found, Rule, Shape, length, one, optional, take
from candide.distributions.base import Distribution, moved
from candide.distributions.documents import Cells, OfDocuments
from candide.encode.tokens import MANNERS, Tokens, score
from candide.errors import InputError
from candide.kernels import text as kernel
from candide.kernels.text_twin import weights_of
from candide.rows.blocks import Block, Codes, Floats
from candide.rows.documents import Documents

if TYPE_CHECKING:
    from candide.distributions.form import PerTerm
    from candide.distributions.heard_terms import HeardTerms
    from candide.distributions.pairs import LevelPair
    from candide.distributions.word_weights import WordWeights

_MANNER = Rule("a known manner of counting", lambda a: np.isin(a, list(MANNERS.values())))


@dataclass(frozen=True, eq=False)
class TermScores(OfDocuments):
    tokens: Tokens
    cells: Cells  # delta
    shared: Floats  # (class,) what every known term adds
    manner: int  # what several occurrences in a document count
    unit: Floats | None = None  # (term,) the weight of an occurrence; None: one
    common: Floats | None = None  # (term,) what a term adds in every class alike, times ``scale``
    scale: Floats | None = None  # (class,)
    constant: Floats | None = None  # (class,) what any document adds: the terms it might have had
    only_known: NDArray[np.bool_] | None = None  # (class,) where a term never met is impossible
    mean_length: int = 0  # terms in a sampled document; 0: the weights are no probabilities

    name: ClassVar[str] = "term_scores"

    @property
    def n_classes(self) -> int:
        return len(self.shared)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        documents, cells = Documents.of(block), self.cells
        table = cells.ends, cells.column, cells.value, self.unit, self.common
        sums = score(cells.words, documents, self.tokens, table, out, self.manner)
        out += sums[:, :1] * self.shared
        if self.scale is not None:
            out += sums[:, 1:] * self.scale
        if self.only_known is not None:
            met, ones = np.zeros_like(out), np.ones_like(cells.value)
            known = score(cells.words, documents, self.tokens, (cells.ends, cells.column, ones, None, None), met, 0)
            out[(known[:, :1] - met > 0.5) & self.only_known] = -np.inf
        absent = documents.absent()
        if self.constant is not None:
            out += np.where(absent[:, None], 0.0, self.constant)
        return int(absent.sum())

    def weights(self, place: Codes, times: Floats) -> Floats:
        at, owner = self.cells.at(place)
        out = np.tile(self.shared, (len(place), 1)) * (1.0 if self.unit is None else self.unit[place][:, None])
        out[owner, self.cells.column[at]] += self.cells.value[at]
        if self.common is not None and self.scale is not None:
            out += self.common[place][:, None] * self.scale
        return out * weights_of(self.manner, times)[:, None]

    def shares(self, place: Codes) -> Floats | None:
        return np.exp(self.weights(place, np.ones(len(place)))) if self.mean_length else None

    def heard(self, words: "WordWeights", silent: Floats | None = None) -> "HeardTerms":
        """The law in which every term has a weight of its own."""
        from candide.distributions.heard_terms import HeardTerms

        own = self if words.how.manner < 0 else replace(self, manner=words.how.manner)
        return HeardTerms(own, words.among(self.cells.letters, self.cells.starts), words.how.power, silent)

    def scaled(self, weight: Floats) -> "TermScores":
        """One feature, and so one weight for all."""
        w = float(weight[0])
        cells = replace(self.cells, value=self.cells.value * w)
        by_class = {name: a * w for name in ("scale", "constant") if (a := getattr(self, name)) is not None}
        only_known = self.only_known if w else None  # 0 * -inf = 0
        return replace(self, cells=cells, shared=self.shared * w, only_known=only_known, mean_length=0, **by_class)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        return self.scale is None

    def form(self) -> "PerTerm":
        """Linear in the weighed occurrences; hashed terms are known by the place of their bucket."""
        from candide.distributions.form import PerTerm

        weight = self.weights(np.arange(self.cells.n_terms), np.ones(self.cells.n_terms))
        if self.only_known is not None:
            met = np.zeros(weight.shape, bool)
            met[np.repeat(np.arange(len(weight)), np.diff(self.cells.ends)), self.cells.column] = True
            weight[~met & self.only_known] = -np.inf
        constant = np.zeros(self.n_classes) if self.constant is None else self.constant
        return PerTerm(constant[:, None], weight.T, law=self, manner=self.manner)

    def exported(self) -> dict[str, Any]:
        held = {name: getattr(self, name) for name in ("unit", "common", "scale", "constant", "only_known")}
        known = {name: array for name, array in held.items() if array is not None}
        return {"rule": "terms", **self._terms_exported(), "shared": self.shared, "manner": self.manner, **known}

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """Documents of ``mean_length`` words in no order: the model says nothing of lengths and orders."""
        if not self.mean_length or self.tokens.bits:
            return super().sample(y, rng)
        cells, _ = self.cells.in_order()  # the same documents, whatever the order in which terms were met
        n_terms = cells.n_terms
        if not n_terms:  # nothing can be said but nothing
            return np.full((len(y), 1), "", object)
        unmet = self.shared if self.only_known is None else np.where(self.only_known, -np.inf, self.shared)
        log_prob = np.tile(unmet[:, None], (1, n_terms))
        term = np.repeat(np.arange(n_terms), np.diff(cells.ends))
        log_prob[cells.column, term] = self.shared[cells.column] + cells.value
        p = np.exp(log_prob)
        p /= p.sum(axis=1, keepdims=True)
        out, names = np.empty((len(y), 1), object), cells.names(np.arange(n_terms))
        for row, c in enumerate(np.asarray(y).tolist()):
            out[row, 0] = " ".join(names[i] for i in rng.choice(n_terms, self.mean_length, p=p[c]))
        return out

    def divergence(self, other: Self) -> Floats:
        """(class, 1) of the law of one term, or of all terms present or absent."""
        return np.array([[pair.moved.sum() + pair.rest] for pair in self.level_pairs(other)])

    def level_pairs(self, other: Self) -> "Iterator[LevelPair]":
        """The shares of the terms met in a class, of one vocabulary that has the terms of both laws."""
        from candide.distributions.pairs import LevelPair

        mine, theirs = self.cells, other.cells
        places, new = kernel.unite(mine.letters, mine.starts, theirs.letters, theirs.starts)
        n_terms = mine.n_terms + len(new)
        known = np.arange(n_terms) < mine.n_terms, np.zeros(n_terms, bool)
        known[1][places] = True

        def key(i: int) -> bytes:
            return mine.key(i) if i < mine.n_terms else theirs.key(int(new[i - mine.n_terms]))

        sides = [(self, *mine.by_class(self.n_classes)), (other, *theirs.by_class(other.n_classes))]
        sides[1] = (other, [places[terms] for terms in sides[1][1]], sides[1][2])
        for c in range(self.n_classes):
            met = np.union1d(sides[0][1][c], sides[1][1][c])
            p, q = (law._shares(c, met, terms[c], values[c], n_terms) for law, terms, values in sides)
            by = moved(p, q) if self.constant is None else moved(p, q) + moved(1.0 - p, 1.0 - q)
            rest = float(by[-1] * (n_terms - len(met))) if len(met) < n_terms else 0.0
            which = known[0][met], known[1][met]
            yield LevelPair(np.zeros_like(met), met, p[:-1], q[:-1], by[:-1], rest, which, key)

    def _shares(self, c: int, met: Codes, terms: Codes, values: Floats, n_terms: int) -> Floats:
        """(term met + 1) the share of each term in a class and, last, of one that was not met."""
        if self.scale is not None or self.unit is not None:
            self._refuse("whose weights are no shares has no divergence", "compare Text(model='multinomial')")
        unmet = -np.inf if self.only_known is not None and self.only_known[c] else self.shared[c]
        logs = np.full(len(met) + 1, unmet)
        logs[np.searchsorted(met, terms)] = self.shared[c] + values
        if self.constant is not None:  # present or absent: these are log-odds
            return 1.0 / (1.0 + np.exp(-logs))
        p = np.exp(logs)
        return p / (p[:-1].sum() + p[-1] * (n_terms - len(met)))

    def describe(
        self, j: int, columns: Sequence[Any] = (), levels: Sequence[str] = (), often: Any = None, most: int = 12
    ) -> tuple[list[str], Floats]:
        """Of each class the terms that weigh most beside the next class, as the shares they stand for."""
        return self.describe_by(np.ones(self.cells.n_terms), most)

    def describe_by(self, heard: Floats, most: int) -> tuple[list[str], Floats]:
        """The same where each term counts as often as ``heard`` says."""
        if self.mean_length == 0 or self.tokens.bits:  # hashed, or weights that are no shares
            return [], np.empty((0, self.n_classes))
        n, each = self.cells.n_terms, max(1, most // max(1, self.n_classes))
        weight = self.weights(np.arange(n), np.ones(n))  # (term, class)
        best: dict[int, None] = {}
        for c in range(self.n_classes if n else 0):
            others = np.delete(weight, c, axis=1).max(axis=1, initial=-np.inf)
            gain = heard * (weight[:, c] - others)
            best |= dict.fromkeys(np.argsort(-gain, kind="stable")[:each].tolist())
        return self.cells.names(np.array(list(best), np.intp)), np.exp(weight[list(best)])

    def arrays(self) -> dict[str, NDArray]:
        """The terms in ascending order."""
        cells, order = self.cells.in_order()
        by_term = {name: a[order] for name in ("unit", "common") if (a := getattr(self, name)) is not None}
        by_class = {name: a for name in ("scale", "constant") if (a := getattr(self, name)) is not None}
        only = {} if self.only_known is None else {"only_known": self.only_known.astype(np.uint8)}
        numbers = one(self.manner, "manner") | one(self.mean_length, "mean_length")
        return {**cells.arrays(), "shared": self.shared, **by_term, **by_class, **only, **numbers}

    @classmethod
    def from_arrays(cls, arrays: Found, shape: Shape, base: Distribution | None = None) -> Self:
        cells = Cells.from_arrays(arrays, shape)
        k, n = (shape.n_classes,), (cells.n_terms,)
        by_term = {name: optional(arrays, name, n) for name in ("unit", "common")}
        by_class = {name: optional(arrays, name, k) for name in ("scale", "constant")}
        if (by_term["common"] is None) != (by_class["scale"] is None):
            raise InputError("of the arrays 'common' and 'scale' there is one without the other")
        known = optional(arrays, "only_known", k, FLAGS, np.uint8)
        manner = take(arrays, "manner", (1,), _MANNER, np.int64).item()
        return cls(
            shape.tokens,
            cells,
            take(arrays, "shared", k),
            manner,
            **by_term,
            **by_class,
            only_known=None if known is None else known != 0,
            mean_length=length(arrays, "mean_length") or 0,
        )
