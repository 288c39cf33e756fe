"""Scores of documents: what each known term adds to each class. A term never met in training adds nothing.

Most terms are met in few classes, so weights are kept as what all terms share and the cells that differ: with ``x``
the weighted occurrences of the terms of a document, the score of a class is

    constant + shared * sum(unit * x) + scale * sum(base * x) + sum over cells of delta * x
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.distributions.base import Distribution
from candide.errors import InputError
from candide.kernels import text as kernel
from candide.kernels.text_twin import weight_of
from candide.rows.blocks import Block, Codes, Floats
from candide.rows.documents import Documents, Tokens, rows, score
from candide.tally import keys

if TYPE_CHECKING:
    from candide.distributions.forms import OfTerms


@dataclass(frozen=True, eq=False)
class Cells:
    """Values of (term, class) cells, by term: term i owns the cells ``ends[i]:ends[i+1]``."""

    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    column: NDArray[np.int32]
    value: Floats

    @cached_property
    def words(self) -> Any:
        """The terms as a hash table, made when the first document is scored."""
        return kernel.Words(self.letters, self.starts)

    def names(self, places: Codes) -> list[str]:
        """Some of the terms as text."""
        whole, starts = self.letters.tobytes(), self.starts
        return [whole[starts[i] : starts[i + 1]].decode("utf-8", "surrogatepass") for i in np.asarray(places).tolist()]

    def in_order(self) -> tuple["Cells", Codes]:
        """The same cells with the terms in ascending order, and the order they were brought in."""
        order = keys.order(self.letters, self.starts)
        at, _ = self.at(order)
        ends = np.concatenate([[0], np.cumsum(np.diff(self.ends)[order])]).astype(np.int64)
        return Cells(*keys.taken(self.letters, self.starts, order), ends, self.column[at], self.value[at]), order

    def at(self, places: Codes) -> tuple[Codes, Codes]:
        """The cells of some terms, and for each the position in ``places`` it belongs to."""
        sizes = np.diff(self.ends)[places]
        owner = np.repeat(np.arange(len(places)), sizes)
        first = np.cumsum(sizes) - sizes
        return np.arange(len(owner)) + np.repeat(self.ends[places] - first, sizes), owner


class OfDocuments(Distribution):
    """What the distributions of documents share: one feature, no infinities, terms are the score itself."""

    tokens: Tokens
    cells: Cells

    @property
    def n_features(self) -> int:
        return 1

    def terms(self, block: Block) -> Floats:
        return self.log_prob(block)[:, :, None]

    def _terms(self, x: NDArray) -> Floats:
        raise InputError("documents are scored as documents, not as numbers")

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        raise InputError("these weights are no probabilities of words and cannot sample; use Text(model='multinomial')")

    def parameters(self) -> dict[str, NDArray]:
        return {}

    @abstractmethod
    def weights(self, place: Codes, times: Floats) -> Floats:
        """(term, class) what so many occurrences of these terms add."""

    def rows(self, documents: Documents) -> tuple[NDArray, NDArray, NDArray]:
        """Sparse rows of the known terms of documents."""
        return rows(self.cells.words, documents, self.tokens)


@dataclass(frozen=True, eq=False)
class TermScores(OfDocuments):
    """A score linear in the (weighted) occurrences of terms."""

    tokens: Tokens
    cells: Cells  # delta
    shared: Floats  # (class,) what every known term adds
    manner: int  # what several occurrences in a document count
    unit: Floats | None = None  # (term,) the weight of an occurrence; None: one
    base: Floats | None = None  # (term,) what a term adds in every class alike, times ``scale``
    scale: Floats | None = None  # (class,)
    constant: Floats | None = None  # (class,) what any document adds: the terms it might have had
    only_known: NDArray[np.bool_] | None = None  # (class,) where a term never met is impossible
    mean_length: int = 0  # terms in a sampled document; 0: the weights are no probabilities

    @property
    def n_classes(self) -> int:
        return len(self.shared)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        documents, cells = Documents.of(block), self.cells
        table = cells.ends, cells.column, cells.value, self.unit, self.base
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
        if self.base is not None and self.scale is not None:
            out += self.base[place][:, None] * self.scale
        return out * np.array([weight_of(self.manner, n) for n in times.tolist()])[:, None]

    def quadratic(self) -> "OfTerms":
        """Linear in the weighed occurrences; hashed terms are known by the place of their bucket."""
        from candide.distributions.forms import OfTerms

        weight = self.weights(np.arange(len(self.cells.starts) - 1), np.ones(len(self.cells.starts) - 1))
        if self.only_known is not None:
            met = np.zeros(weight.shape, bool)
            met[np.repeat(np.arange(len(weight)), np.diff(self.cells.ends)), self.cells.column] = True
            weight[~met & self.only_known] = -np.inf
        base = np.zeros(self.n_classes) if self.constant is None else self.constant
        return OfTerms(weight.T, base[:, None], law=self, manner=self.manner)

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        """Documents of ``mean_length`` words in no order: the model says nothing of lengths and orders."""
        if not self.mean_length or self.tokens.bits:
            return super().sample(y, rng)
        n_terms = len(self.cells.starts) - 1
        unmet = self.shared if self.only_known is None else np.where(self.only_known, -np.inf, self.shared)
        log_prob = np.tile(unmet[:, None], (1, n_terms))
        term = np.repeat(np.arange(n_terms), np.diff(self.cells.ends))
        log_prob[self.cells.column, term] = self.shared[self.cells.column] + self.cells.value
        p = np.exp(log_prob)
        p /= p.sum(axis=1, keepdims=True)
        out, names = np.empty((len(y), 1), object), self.cells.names(np.arange(n_terms))
        for row, c in enumerate(np.asarray(y).tolist()):
            out[row, 0] = " ".join(names[i] for i in rng.choice(n_terms, self.mean_length, p=p[c]))
        return out


@dataclass(frozen=True, eq=False)
class PolyaDocuments(OfDocuments):
    """Dirichlet-multinomial: a term that occurred once is likelier to occur again, so repeats say less."""

    tokens: Tokens
    cells: Cells  # alpha of the terms met in a class
    alpha: Floats  # (class,) of a term not met in it
    concentration: Floats  # (class,) sum of alpha over all terms

    not_linear: ClassVar[str] = "under the model 'polya' repeats count less; use the model 'multinomial'"

    @property
    def n_classes(self) -> int:
        return len(self.alpha)

    def weights(self, place: Codes, times: Floats) -> Floats:
        at, owner = self.cells.at(place)
        alpha = np.tile(self.alpha, (len(place), 1))
        alpha[owner, self.cells.column[at]] = self.cells.value[at]
        return numerics.log_rising(alpha, times[:, None])

    def add_log_prob(self, block: Block, out: Floats) -> int:
        from scipy.sparse import csr_array

        documents = Documents.of(block)
        times, place, ends = self.rows(documents)
        different, which = np.unique(times, return_inverse=True)
        common = numerics.log_rising(self.alpha, different[:, None])  # (different, class)
        shape = (len(documents), max(1, len(different)))
        if len(different):
            out += csr_array((np.ones(len(times)), which.astype(np.int32), ends), shape) @ common
            at, owner = self.cells.at(place)
            column, row = self.cells.column[at], np.repeat(np.arange(len(documents)), np.diff(ends))[owner]
            gain = numerics.log_rising(self.cells.value[at], times[owner]) - common[which[owner], column]
            out += np.bincount(row * self.n_classes + column, gain, out.size).reshape(out.shape)
        length = np.add.reduceat(np.append(times, 0.0), ends[:-1]) * (np.diff(ends) > 0)
        out -= numerics.log_rising(self.concentration, length[:, None])
        return int(documents.absent().sum())
