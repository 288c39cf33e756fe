"""Model: a class prior times distributions, one a block. Scores rows, gives posteriors, samples.

Everything is in log space. Rows are scored in chunks that stay in cache, each chunk through all blocks and
then the log-sum-exp, on threads. Knows nothing of data frames, labels or scikit-learn: blocks in, arrays out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide import events, formatting, kernels, numerics
from candide.data.blocks import Block, Codes, Floats, not_finite_error, row_width, slice_rows
from candide.data.labels import Labels
from candide.errors import CellError, InputError, unknown_name_error
from candide.kernels import threads
from candide.model.counts import ModelCounts
from candide.model.policy import ShiftedCalibrator, parse_class_proportions
from candide.model.settings import Settings
from candide.priors import PRIORS, Prior, resolve_prior

if TYPE_CHECKING:  # read when a model is estimated: to load one stays quick
    from candide.distributions import Distribution
    from candide.model.calibration import IsotonicCalibrator

_CHUNK_BYTES = 1 << 18  # of joint log-probabilities: a chunk of them stays in the second-level cache


class UnusableValueError(Exception):
    """A block holds an infinite value, or an absent one where none is allowed; ``block`` is its position.

    The caller, who knows the columns' names, says where.
    """

    def __init__(self, block: int):
        super().__init__(block)
        self.block = block


@dataclass(frozen=True, eq=False)
class Model:
    """log p(class) and p(block | class): the generative story, complete."""

    log_prior: Floats  # (classes,)
    distributions: "tuple[Distribution, ...]"
    allows_missing: bool = True  # scikit-learn's classes refuse NaN
    calibrator: "IsotonicCalibrator | ShiftedCalibrator | None" = (
        None  # what bends the probabilities at last; joint scores are as they are
    )

    @property
    def n_classes(self) -> int:
        return len(self.log_prior)

    @cached_property
    def strict_model(self) -> "Model":
        """The same model, for which an absent value is an error."""
        return replace(self, allows_missing=False)

    def shift_prior(self, log_ratio: Floats) -> "Model":
        """The model where the classes have other shares: so many times those that it has learned, in logs."""
        if self.calibrator is not None:
            return replace(self, calibrator=ShiftedCalibrator(self.calibrator, log_ratio))
        joint = self.log_prior + log_ratio
        return replace(self, log_prior=joint - np.logaddexp.reduce(joint))

    def joint_log_likelihood(self, blocks: Sequence[Block]) -> Floats:
        """log p(x, class), (row, class)."""
        return self._score(blocks, lambda joint, out: None, keep=True)

    def posterior(self, blocks: Sequence[Block]) -> Floats:
        """p(class | x), (row, class). A row impossible under every class is left with the class prior."""
        if self.calibrator is not None:
            return np.exp(self.log_posterior(blocks))
        prior = np.exp(self.log_prior)
        return self._score(blocks, lambda joint, out: kernels.posterior(joint, prior), keep=True)

    def log_posterior(self, blocks: Sequence[Block]) -> Floats:
        """log p(class | x), (row, class)."""
        return self._score(blocks, lambda joint, out: self._normalise(joint), keep=True)

    def log_density(self, blocks: Sequence[Block]) -> Floats:
        """log p(x), (row,): how well the model as a whole expects each row.

        -inf where a value has probability 0 in every class, such as a level never seen under MLE. That says nothing of
        the class, so such a row still has a posterior, by its other columns.
        """

        def finish(joint: Floats, out: Floats) -> None:
            out[:] = kernels.normalise(joint)

        return self._without_impossible(self._score(blocks, finish, keep=False), blocks)

    def score_blocks(self, blocks: Sequence[Block]) -> tuple[Floats, Floats]:
        """log p(class | x), (row, class), and log p(x), (row,), of the same rows."""
        joint = self.joint_log_likelihood(blocks)
        return joint, self._without_impossible(self._normalise(joint), blocks)

    def _without_impossible(self, density: Floats, blocks: Sequence[Block]) -> Floats:
        """log p(x), -inf of rows that hold a value of probability 0 in every class."""
        for law, block in zip(self.distributions, blocks, strict=True):
            if (struck := law.impossible_rows(block)) is not None:
                density[struck] = -np.inf
        return density

    def classify(self, blocks: Sequence[Block]) -> Codes:
        """The most probable class of each row; the first of several equals."""
        if self.calibrator is not None:
            return self.log_posterior(blocks).argmax(axis=1)
        likely = int(self.log_prior.argmax())

        def finish(joint: Floats, out: Codes) -> None:
            kernels.first_largest(joint, likely, out)

        return self._score(blocks, finish, keep=False, dtype=np.intp, to_choose=True)

    def sample(self, n_rows: int, rng: "np.random.Generator") -> tuple[list[NDArray], Codes]:
        """Tell the generative story ``n_rows`` times: first the class, then each block given the class."""
        prior = np.exp(self.log_prior)
        y = rng.choice(self.n_classes, size=n_rows, p=prior / prior.sum())
        return [d.sample(y, rng) for d in self.distributions], y

    def _normalise(self, joint: Floats) -> Floats:
        """log p(class | x) in place, and log p(x)."""
        evidence = kernels.normalise(joint)
        if len(evidence) and evidence.min() == -np.inf:
            joint[np.isneginf(evidence)] = self.log_prior
        if self.calibrator is not None:
            joint[:] = self.calibrator(joint)
        return evidence

    @cached_property
    def _chunking(self) -> tuple[int, bool]:
        """How many rows are scored at once, and whether that is done by BLAS: asked once, for a row takes no longer."""
        step = max([_CHUNK_BYTES // (8 * self.n_classes), *(d.min_batch_rows for d in self.distributions)])
        return step, any(d.is_blas_bound for d in self.distributions)

    def _score(
        self,
        blocks: Sequence[Block],
        finish: Callable,
        *,
        keep: bool,
        dtype: type = np.float64,
        to_choose: bool = False,
    ) -> NDArray:
        """Score rows chunk by chunk and ``finish`` each chunk; ``keep`` the joint array or only what finish writes.

        ``to_choose``: only the largest class matters, so that the last distribution need not score the others.
        """
        n_rows = blocks[0].shape[0]
        out: NDArray = np.empty((n_rows, self.n_classes) if keep else n_rows, dtype)
        steps = [(i, d.add_log_prob, b) for i, (d, b) in enumerate(zip(self.distributions, blocks, strict=True))]
        if to_choose and (screening := [i for i, d in enumerate(self.distributions) if d.can_screen_classes]):
            i, _, block = steps.pop(screening[0])  # last, when it knows what the others make of the classes
            steps.append((i, self.distributions[i].add_for_argmax, block))
        step, by_blas = self._chunking

        def work(rows: slice) -> None:
            scratch = None if keep else np.empty((min(step, rows.stop - rows.start), self.n_classes))
            for start in range(rows.start, rows.stop, step):
                chunk = slice(start, min(start + step, rows.stop))
                joint = out[chunk] if scratch is None else scratch[: chunk.stop - start]
                kernels.fill_rows(joint, self.log_prior)
                for i, add, block in steps:
                    absent = add(slice_rows(block, chunk), joint)
                    if absent == kernels.INFINITE or (absent and not self.allows_missing):
                        raise UnusableValueError(i)
                finish(joint, out[chunk])

        cost = self.n_classes * sum(row_width(block) for block in blocks)
        threads.map_rows(work, n_rows, cost=max(1, cost), is_blas_bound=by_blas)
        return out


def apply_model(
    method: Callable,
    model: Model,
    columns: Sequence[Sequence[Any]],
    blocks: Sequence[Block],
    unusable: Callable[[Any, Block], InputError] = not_finite_error,
) -> Any:
    """Ask a model about blocks of rows; a value it cannot use is an error that names its column and row."""
    try:
        return method(model, blocks)
    except UnusableValueError as error:
        raise unusable(columns[error.block], blocks[error.block]) from None


def estimate_model(counts: ModelCounts, settings: Settings | None = None) -> Model:
    """Turn counts into a model: this is where priors come in, and it may be done again without the data.

    ``priors`` is None (each event model's own), one prior for every block, or a mapping from event names to priors.
    ``estimate`` is one for every block, or a mapping from event names to estimates, "predictive" for the rest.
    """
    settings = settings or Settings()
    if not len(counts.labels):
        raise InputError("this model has no rows left, and so no class", remedy="count rows into it")
    how, priors = settings.estimate, settings.param_priors
    for what, given in (("priors", priors), ("estimate", how)):
        _check_event_names(what, given, [part.event.name for part in counts.plan.parts])
    chosen = [prior_for(part.event, priors) for part in counts.plan.parts]
    distributions = []
    for part, tally, prior in zip(counts.plan.parts, counts.tallies, chosen, strict=True):
        try:
            distributions.append(part.event.estimate(tally, prior, _estimate_method(part.event, how)))
        except CellError as error:
            label, column = counts.labels.values[error.class_code], part.columns[error.feature]
            raise InputError(f"class {label!r}: {error.reason}", column=column) from None
    return Model(class_log_prior(counts, settings.class_prior, how), tuple(distributions))


def _check_event_names(what: str, given: Any, events: list[str]) -> None:
    for name in given if isinstance(given, Mapping) else ():
        if name not in events:
            raise unknown_name_error(f"event in {what}", name, dict.fromkeys(events))


def _estimate_method(event: events.EventModel, how: Any) -> str:
    return how.get(event.name, "predictive") if isinstance(how, Mapping) else how


def prior_for(event: events.EventModel, priors: Any) -> Prior | None:
    """The prior that the settings give an event model; None leaves it its own."""
    if isinstance(priors, Mapping):
        priors = priors.get(event.name)
    return None if priors is None else resolve_prior(priors)


def class_log_prior(counts: ModelCounts, class_prior: Any, method: Any) -> Floats:
    """log p(class): ``"empirical"``, ``"uniform"``, a prior on the shares, the shares themselves; None for no prior."""
    k = len(counts.labels)
    if class_prior is None:  # classes start level, and what they start from is no probability
        return np.zeros(k)
    if isinstance(class_prior, str) and class_prior == "uniform":
        return np.full(k, -np.log(k))
    if isinstance(class_prior, str) and class_prior == "empirical":
        total = counts.class_weight.sum()
        return numerics.log_proportion(counts.class_weight, total) if total > 0 else np.full(k, -np.log(k))
    if isinstance(class_prior, str) and class_prior not in PRIORS:
        usable = [name for name, prior in PRIORS.items() if issubclass(prior, events.Categorical.accepted_priors)]
        raise unknown_name_error("class prior", class_prior, dict.fromkeys(["empirical", "uniform", *usable]))
    if isinstance(class_prior, str | Prior):
        return _class_proportions(counts, resolve_prior(class_prior), method if isinstance(method, str) else "mean")
    with np.errstate(divide="ignore"):
        return np.log(_given_log_prior(class_prior, counts.labels))


def _class_proportions(counts: ModelCounts, prior: Prior | None, how: str) -> Floats:
    """The class prior is the Categorical event model on ``y``."""
    law = events.Categorical().estimate(counts.class_tally, prior, how)
    return law.log_prob(np.arange(len(counts.labels))[:, None])[:, 0]


def _given_log_prior(shares: Any, labels: Labels) -> Floats:
    if isinstance(shares, Mapping):
        return parse_class_proportions(shares, labels)
    given = np.asarray(shares, np.float64)
    if given.shape != (len(labels),):
        raise InputError(
            f"class_prior: {formatting.format_count(given.size, 'share')} "
            f"for {formatting.format_count(len(labels), 'class', 'classes')} {labels.values}"
        )
    if not (given >= 0).all() or not np.isclose(given.sum(), 1.0):
        raise InputError(f"class_prior: shares must be non-negative and sum to 1, not {given.tolist()}")
    return given
