"""Event model: a family for all columns of a block, which turns a tally and a prior into a distribution.

``how`` picks the estimate: ``mle`` (the data most likely), ``map`` (the parameters most probable), ``mean`` (the
parameters expected), ``predictive`` (the parameters integrated out: Student's t for a Gaussian).
The tally stays as it is, so prior and estimate may be chosen again without the data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import distributions
from candide.data.blocks import Block, Codes, Floats, slice_rows
from candide.data.table import Name
from candide.encoding import Encoding, TransformedEncoding
from candide.errors import InputError, InputTypeError, unknown_name_error
from candide.priors import Jeffreys, Prior, resolve_prior
from candide.registry import Registry
from candide.tally import TALLIES, Moments, Tally, TallySpec
from candide.tally.base import name_rows_in_errors

if TYPE_CHECKING:  # imported at first use, so that loading a model stays quick
    from candide.tally.association import AssociationTest

ESTIMATES = ("mle", "map", "mean", "predictive")
_CHUNK_CELLS = 1 << 20  # (row, class, feature) cells of rows held out at once


@dataclass(frozen=True)
class Support:
    """The numbers that a family gives probability: from ``low`` to ``high``, all of them or whole ones.

    >>> Support(low=0, is_integer=True)
    Support(low=0, high=inf, is_integer=True, is_open=False)
    """

    low: float = -np.inf
    high: float = np.inf
    is_integer: bool = False
    is_open: bool = False  # whether ``low`` itself is left out


# Columns by position with the event model, encodings and tally that the counts settle for them.
SettledColumns = tuple["EventModel", list[int], tuple[Encoding, ...], Tally]
PosteriorSampler = Callable[["np.random.Generator"], "distributions.Distribution"]
TallyComparison = tuple["EventModel", Any, Any, tuple[Encoding, ...]]  # a family, both tallies, and their encodings


class EventModel:
    """A class-conditional family. Public methods check here, once; families define ``_estimate`` and ``_evidence``.

    >>> from candide.events import Gaussian, Poisson
    >>> from candide.tally import Sums
    >>> event = Poisson()
    >>> visits, y = np.array([[1.0], [3.0], [8.0]]), np.array([0, 0, 1])
    >>> tally = Sums.from_rows(visits, y, n_classes=2, spec=event.spec(1))
    >>> event.estimate(tally, how="mle").parameters()["rate"].ravel().tolist()
    [2.0, 8.0]
    >>> event.encoding, event.extra_sums, event.spec(2).n_features  # how columns are counted; no prior is in it
    (Identity(least=0.0), frozenset({'log_factorial'}), 2)
    >>> event.evidence(tally).shape, event.sample_size(tally).ravel().tolist()  # log p(values | prior) in each class
    ((2, 1), [2.0, 1.0])
    >>> event.information(tally).round(3).tolist(), event.association_test(tally).name, event.support.is_integer
    ([0.462], 'chi2', True)
    >>> event.free_parameters(tally, 1).tolist(), Gaussian.from_variant("full") == Gaussian(covariance="full")
    ([1.0], True)
    >>> # The counts do not change this event model.
    >>> event.settle_columns(tally, ()), event.moments_from_levels(tally, (), [0]), event.max_levels
    (None, None, None)
    >>> event.freeze_structure(tally) is event, event.prepare_comparison(tally, tally, ())[0] is event.comparison_family
    (True, True)
    >>> event.term_names(["visits"]), event.term_titles(["visits"]), event.term_kind(["visits"])
    ((('visits',),), ('visits',), 'column')

    A family of your own names a tally kind, defines ``parameters`` and ``log_density`` and inherits the rest.

    >>> class Rare(EventModel):
    ...     name, kind = "rare", "sums"
    ...
    ...     def parameters(self, tally, prior, how):
    ...         return {"rate": tally.total / tally.n}
    ...
    ...     def log_density(self, x, rate):
    ...         return x * np.log(rate) - rate
    >>> Rare().estimate(tally).log_prob(np.array([[2.0]])).round(3).tolist()
    [[-0.614, -3.841]]
    """

    name: ClassVar[str] = ""
    kind: ClassVar[str] = ""  # the tally kind that suffices
    accepts_sparse: ClassVar[bool] = False  # whether it takes sparse rows
    has_density: ClassVar[bool] = True  # whether its scores are log-probabilities, so that there is a log p(x)
    accepts_groups: ClassVar[bool] = False  # whether it takes a group of columns, ``events={("a", "b"): ...}``
    is_joint: ClassVar[bool] = False  # whether the columns of a group depend on each other: then each group is a block
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Prior,)  # the priors it accepts
    support: ClassVar[Support | None] = Support()  # None: its values are not numbers
    has_learned_structure: ClassVar[bool] = False  # whether the counts choose more than numbers, such as bins
    max_levels: ClassVar[int | None] = None  # levels beyond which a column is counted as a number
    outcome: ClassVar[str] = ""  # where a class has one probability or weight for a column: of what
    weights_tokens: ClassVar[bool] = False  # whether it is of documents in which every token may have a weight
    _has_leading_axes: ClassVar[bool] = False  # whether its estimate carries axes before (class, feature) along
    _information: ClassVar[str] = "mutual_information"  # functions of tally/association.py, by name
    _association_test: ClassVar[str] = "association_test"
    prior: Prior | str | None = None
    transform: Callable[[NDArray], NDArray] | None = None  # what is tallied, if it is not x itself
    extra_sums: frozenset[str] = frozenset()  # what the tally keeps beyond its sums

    @classmethod
    def from_variant(cls, name: str) -> Self:
        """The event model meant by what follows a family's name and a hyphen."""
        raise unknown_name_error("event", f"{cls.name}-{name}", [cls.name])

    @property
    def encoding(self) -> Encoding:
        """How each column is encoded, before anything is learned of it: what suits the tally, or an own transform."""
        if self.kind not in TALLIES:
            raise unknown_name_error(f"tally kind of event model {self._title}:", self.kind, TALLIES)
        return TALLIES[self.kind].encoding if self.transform is None else TransformedEncoding.from_event(self)

    def term_names(self, columns: Sequence[Name]) -> tuple[tuple[Name, ...], ...]:
        """The columns behind each feature of its distribution: one each, unless columns are modelled together."""
        return tuple((name,) for name in columns)

    def term_titles(self, columns: Sequence[Name], encodings: Sequence[Encoding] = ()) -> tuple[str, ...]:
        """The title of each feature of its distribution: "age", or "age x job" for columns modelled together."""
        return tuple(" x ".join(map(str, names)) for names in self.term_names(columns))

    def term_kind(self, columns: Sequence[Name]) -> str:
        """What a term of these columns is called in a list of terms."""
        return "column" if len(columns) == 1 else self.name

    def spec(self, n_features: int, encodings: Sequence[Encoding] = ()) -> TallySpec:
        """How a block of ``n_features`` columns is tallied, with no prior in it; ``encodings`` as learned of each."""
        return TallySpec(self.kind, tuple(encodings) or (self.encoding,) * n_features, self.extra_sums)

    def estimate(
        self, tally: Any, prior: Prior | str | None = None, how: str = "predictive"
    ) -> "distributions.Distribution":
        """The distribution that the tally gives under the prior; ``prior=None`` means the event model's own."""
        return self._estimate(tally, self._resolve(prior), _check_estimate(how))

    def evidence(self, tally: Any, prior: Prior | str | None = None) -> Floats:
        """(class, feature) log marginal likelihood of the tallied values; its sum is that of the block."""
        return self._evidence(tally, self._resolve(prior))

    def posterior_sampler(
        self, tally: Any, prior: Prior | str | None = None, how: str = "predictive"
    ) -> PosteriorSampler:
        """A function that draws a distribution from the posterior, under the prior of the estimate.

        The MLE has no prior: its parameters are drawn under Jeffreys' prior.

        >>> from candide.events import Poisson
        >>> from candide.tally import Sums
        >>> tally = Sums(n=np.array([[100.0]]), total=np.array([[400.0]]), log_factorial=np.array([[0.0]]))
        >>> draw = Poisson().posterior_sampler(tally)
        >>> rates = [draw(np.random.default_rng(i)).rate.item() for i in range(200)]
        >>> round(float(np.mean(rates)), 1), round(float(np.std(rates)), 1)  # 4 and the root of 4 / 100
        (4.0, 0.2)
        """
        return self._posterior_sampler(tally, Jeffreys() if _check_estimate(how) == "mle" else self._resolve(prior))

    def _posterior_sampler(self, tally: Any, prior: Any) -> PosteriorSampler:
        what = f"{self._title} has no posterior to draw its parameters from"
        raise InputError(what, remedy="request probabilities without intervals, or choose another event model")

    @property
    def comparison_family(self) -> "EventModel":
        """The family whose distributions compare two tallies: itself, where these have a divergence."""
        return self

    def prepare_comparison(self, a: Any, b: Any, encodings: Sequence[Encoding]) -> "TallyComparison":
        """How two tallies are compared: the family, both tallies and their encodings."""
        return self.comparison_family, a, b, tuple(encodings)

    def settle_columns(self, tally: Any, encodings: Sequence[Encoding]) -> "list[SettledColumns] | None":
        """The event models of the columns, where the counts decide them; None: this one."""
        return None

    def match_classes(self, labels: Any) -> Self:
        """This event model for these classes, where it holds values of classes: those of new classes are 0.

        Most event models hold none: their values are in the counts.

        >>> from candide.data.labels import Labels
        >>> from candide.events import Poisson
        >>> Poisson().match_classes(Labels(("no", "yes"))) == Poisson()
        True
        """
        return self

    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """This event model with new names of its classes, where it has any.

        >>> from candide.events import Poisson
        >>> Poisson().rename_classes({"n": "no", "y": "yes"}) == Poisson()
        True
        """
        return self

    def freeze_structure(self, tally: Any) -> "EventModel":
        """This event model with its learned structure fixed at that of a tally, so that rows held out keep it."""
        return self

    def moments_from_levels(
        self, tally: Any, encodings: Sequence[Encoding], features: Sequence[int]
    ) -> "Moments | None":
        """The moments of these columns, where levels are counted that are numbers; None where they are not."""
        return None

    def sample_size(self, tally: Any) -> Floats:
        """(class, feature) how many values the estimate uses; for columns modelled together (class, 1) suffices."""
        return tally.n

    def information(self, tally: Any) -> Floats | None:
        """(feature,) mutual information of each column and the class, in nats; None where there is no measure."""
        from candide.tally import association

        return getattr(association, self._information)(self._tally_to_test(tally))

    def free_parameters(self, tally: Any, n_features: int) -> Floats:
        """(feature,) free parameters of each feature in a class: for levels, one less than those that occur."""
        from candide.tally import LevelTally

        if not isinstance(tally, LevelTally):
            return np.ones(n_features)
        occurs = (tally.counts > 0).any(axis=0)
        return np.maximum(np.diff(np.append(0, np.cumsum(occurs))[tally.offsets]) - 1.0, 0.0)

    def association_test(self, tally: Any) -> "AssociationTest | None":
        """The classical test that each column depends on the class; None where there is none."""
        from candide.tally import association

        return getattr(association, self._association_test)(self._tally_to_test(tally))

    def held_out_contributions(
        self,
        tally: Any,
        prior: Prior | str | None,
        how: str,
        block: Block,
        y: Codes,
        weight: Floats | None = None,
        out: NDArray | None = None,
    ) -> NDArray:
        """(row, class, feature) contributions of each row under the estimate without it, into ``out`` where given.

        The rows must be among those counted, with their ``weight``, which is subtracted from the row's own class and
        from what the prior takes from the pooled tally. Levels and classes stay. So a class of one row becomes a
        declared class without rows: a proper prior gives its distribution, and where nothing determines it (MLE) the
        error of fitting without the row is raised, with the row. A missing value contributes 0. Learned structure,
        such as bins, stays as all rows chose it (``freeze_structure``).

        >>> from candide.events import Poisson
        >>> from candide.tally import Sums
        >>> visits, y = np.array([[1.0], [3.0], [8.0]]), np.array([0, 0, 1])
        >>> tally, rest = (Sums.from_rows(visits[i:], y[i:], n_classes=2, spec=Poisson().spec(1)) for i in (0, 1))
        >>> Poisson().held_out_contributions(tally, None, "predictive", visits[:1], y[:1]).round(3).tolist()
        [[[-2.405], [-3.97]]]
        >>> Poisson().estimate(rest).contributions(visits[:1]).round(3).tolist()
        [[[-2.405], [-3.97]]]
        """
        chosen, how = self._resolve(prior), _check_estimate(how)
        out = np.empty((block.shape[0], *tally.n.shape)) if out is None else out
        step = max(1, _CHUNK_CELLS // max(1, self._cells(tally)))
        for start in range(0, len(out), step):
            rows = slice(start, min(start + step, len(out)))
            w = None if weight is None else weight[rows]
            with name_rows_in_errors(range(start, rows.stop)):
                out[rows] = self._held_out_contributions(tally, chosen, how, slice_rows(block, rows), y[rows], w)
        return out

    def _resolve(self, prior: Prior | str | None) -> Any:
        chosen = resolve_prior(self.prior if prior is None else prior)
        if chosen is not None and not isinstance(chosen, self.accepted_priors):
            names = ", ".join(p.__name__ for p in self.accepted_priors)
            raise InputError(f"the {self._title} event model takes the priors {names}; got {chosen!r}")
        return chosen

    @property
    def _title(self) -> str:
        return self.name or type(self).__name__

    # What a family of the package overrides.

    def _estimate(self, tally: Any, prior: Any, how: str) -> "distributions.Distribution":
        params = {key: np.asarray(p, float) for key, p in self.parameters(tally, prior, how).items()}
        return distributions.Density(self.log_density, params, self.draw, self.natural)

    def _evidence(self, tally: Any, prior: Any) -> Floats:
        raise InputError(f"the {self._title} event model has no marginal likelihood")

    def _tally_to_test(self, tally: Any) -> Any:
        """The tally by which the association of columns and the class is measured."""
        return tally

    def _held_out_contributions(
        self, tally: Any, prior: Any, how: str, block: Block, y: Codes, weight: Floats | None
    ) -> Floats:
        """Of a few rows: all at once where the estimate carries an axis of rows along, else one after another."""
        if not self._has_leading_axes:
            return self._held_out_one_by_one(tally, prior, how, block, y, weight)
        left = tally.without_each(self._row_tallies(tally, block, weight), y)
        return self._estimate(left, prior, how).contributions(block)

    def _held_out_one_by_one(
        self, tally: Any, prior: Any, how: str, block: Block, y: Codes, weight: Floats | None
    ) -> Floats:
        out = np.empty((len(y), *tally.n.shape))
        for i in range(len(y)):
            at = slice(i, i + 1)
            row = slice_rows(block, at)
            with name_rows_in_errors([i]):
                left = tally - self._count(tally, row, y[at], None if weight is None else weight[at], len(tally.n))
                out[at] = self._estimate(left, prior, how).contributions(row)
        return out

    def _row_tallies(self, tally: Any, block: Block, weight: Floats | None) -> Any:
        """The tally of each row as a class of its own."""
        return self._count(tally, block, np.arange(block.shape[0]), weight, block.shape[0])

    def _count(self, like: Any, block: Block, y: Codes, weight: Floats | None, n_classes: int) -> Tally:
        """Rows counted in the encoding of another tally."""
        spec = self.spec(like.n.shape[1], tuple(np.diff(getattr(like, "offsets", ())).tolist()))
        return type(like).from_rows(block, y, weight, n_classes=n_classes, spec=spec)

    def _cells(self, tally: Any) -> int:
        """How many numbers a distribution has, which bounds the rows held out at once."""
        return tally.n.size

    # What an event model of your own defines.

    def parameters(self, tally: Any, prior: Any, how: str) -> dict[str, Floats]:
        """(class, feature) parameters by name."""
        raise NotImplementedError(f"event model {self._title}: give parameters(tally, prior, how)")

    def log_density(self, x: NDArray, **params: Floats) -> NDArray:
        """Elementwise log-density, broadcasting x (row, 1, feature) against parameters (class, feature)."""
        raise NotImplementedError(f"event model {self._title}: give log_density(x, **params)")

    draw: Callable[..., NDArray] | None = None  # draw(rng, **params) -> values of the parameters' shape
    # natural(**params) -> weight, base: where log_density is weight * x + base, but for what all classes share
    natural: Callable[..., tuple[Floats, Floats]] | None = None


EVENTS: Registry[EventModel] = Registry(
    "candide.events",
    {
        "bernoulli": "Bernoulli",
        "binned": "categorical.Binned",
        "categorical": "Categorical",
        "complement": "multinomial.Complement",
        "exponential": "non_negative.Exponential",
        "gaussian": "normal.Gaussian",
        "lognormal": "normal.LogNormal",
        "multinomial": "Multinomial",
        "negativebinomial": "non_negative.NegativeBinomial",
        "poisson": "non_negative.Poisson",
        "text": "Text",
        "whole": "categorical.Whole",
    },
)
get_class = EVENTS.get_class


def resolve_event(x: EventModel | type[EventModel] | str) -> EventModel:
    """The event model meant by an instance, a class or a name; what follows a hyphen is for the family to read.

    >>> resolve_event("poisson").name, resolve_event("gaussian-full").covariance
    ('poisson', 'full')
    """
    if isinstance(x, EventModel):
        return x
    if isinstance(x, type) and issubclass(x, EventModel):
        return x()
    if x is None:
        remedy = "leave it out, or pass 'auto', to choose event models by the data"
        raise InputTypeError("expected an event model or its name, got None", remedy=remedy)
    name, hyphen, variant = x.partition("-") if isinstance(x, str) else ("", "", "")
    if name not in EVENTS:
        raise unknown_name_error("event", x, EVENTS)
    return EVENTS[name].from_variant(variant) if hyphen else EVENTS[name]()


def _check_estimate(how: str) -> str:
    if how not in ESTIMATES:
        raise unknown_name_error("estimate", how, ESTIMATES)
    return how
