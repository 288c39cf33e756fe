"""Model: a class prior and one distribution per block. It scores blocks of rows, and samples.

Everything is in log space. Rows are scored in chunks that stay in cache, each through all blocks and then the
log-sum-exp, on threads. Data frames, labels and scikit-learn are unknown here: blocks in, arrays out.
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

if TYPE_CHECKING:  # imported when a model is estimated: loading one stays fast
    from candide.distributions import Distribution
    from candide.model.calibration import IsotonicCalibrator

_CHUNK_BYTES = 1 << 18  # of joint log-probabilities, which stay in the second-level cache


class UnusableValueError(Exception):
    """A block holds an infinite value, or a missing one where none is allowed; ``block`` is its index.

    The caller, which has the names of the columns, reports where.
    """

    def __init__(self, block: int):
        super().__init__(block)
        self.block = block


@dataclass(frozen=True, eq=False)
class Model:
    """log p(class) and p(block | class): a complete generative model."""

    log_prior: Floats  # (classes,)
    distributions: "tuple[Distribution, ...]"
    allows_missing: bool = True  # scikit-learn's classes reject NaN
    calibrator: "IsotonicCalibrator | ShiftedCalibrator | None" = (
        None  # of probabilities; joint scores stay as they are
    )

    @property
    def n_classes(self) -> int:
        return len(self.log_prior)

    @cached_property
    def strict_model(self) -> "Model":
        """The same model, for which a missing value is an error."""
        return replace(self, allows_missing=False)

    def shift_prior(self, log_ratio: Floats) -> "Model":
        """Return the model for other class proportions, given the log of their ratio to those of the training rows."""
        if self.calibrator is not None:
            return replace(self, calibrator=ShiftedCalibrator(self.calibrator, log_ratio))
        joint = self.log_prior + log_ratio
        return replace(self, log_prior=joint - np.logaddexp.reduce(joint))

    def joint_log_likelihood(self, blocks: Sequence[Block]) -> Floats:
        """log p(x, class), (row, class)."""
        return self._score(blocks, lambda joint, out: None, keep=True)

    def posterior(self, blocks: Sequence[Block]) -> Floats:
        """p(class | x), (row, class). A row that is impossible under every class has the class prior."""
        if self.calibrator is not None:
            return np.exp(self.log_posterior(blocks))
        prior = np.exp(self.log_prior)
        return self._score(blocks, lambda joint, out: kernels.posterior(joint, prior), keep=True)

    def log_posterior(self, blocks: Sequence[Block]) -> Floats:
        """log p(class | x), (row, class)."""
        return self._score(blocks, lambda joint, out: self._normalise(joint), keep=True)

    def log_density(self, blocks: Sequence[Block]) -> Floats:
        """log p(x), (row,).

        It is -inf if a value has probability 0 in every class, such as an unseen level under MLE. Such a value does not
        depend on the class, so that the row still has a posterior, from its other columns.
        """

        def finish(joint: Floats, out: Floats) -> None:
            out[:] = kernels.normalise(joint)

        return self._without_impossible(self._score(blocks, finish, keep=False), blocks)

    def score_blocks(self, blocks: Sequence[Block]) -> tuple[Floats, Floats]:
        """log p(class | x), (row, class), and log p(x), (row,), of the same rows."""
        joint = self.joint_log_likelihood(blocks)
        return joint, self._without_impossible(self._normalise(joint), blocks)

    def _without_impossible(self, density: Floats, blocks: Sequence[Block]) -> Floats:
        """Set log p(x) to -inf for rows with a value that has probability 0 in every class."""
        for distribution, block in zip(self.distributions, blocks, strict=True):
            if (impossible := distribution.impossible_rows(block)) is not None:
                density[impossible] = -np.inf
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
        """Draw ``n_rows`` rows: first the class, then each block given the class."""
        prior = np.exp(self.log_prior)
        y = rng.choice(self.n_classes, size=n_rows, p=prior / prior.sum())
        return [d.sample(y, rng) for d in self.distributions], y

    def _normalise(self, joint: Floats) -> Floats:
        """Replace log p(x, class) by log p(class | x) in place, and return log p(x)."""
        evidence = kernels.normalise(joint)
        if len(evidence) and evidence.min() == -np.inf:
            joint[np.isneginf(evidence)] = self.log_prior
        if self.calibrator is not None:
            joint[:] = self.calibrator(joint)
        return evidence

    @cached_property
    def _chunking(self) -> tuple[int, bool]:
        """The number of rows of a chunk, and whether BLAS does the work; cached, as a single row takes no longer."""
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
        """Score rows by chunks and ``finish`` each; ``keep`` the joint array, or only what ``finish`` writes.

        ``to_choose``: only the largest class matters, so that the last distribution need not score all others.
        """
        n_rows = blocks[0].shape[0]
        out: NDArray = np.empty((n_rows, self.n_classes) if keep else n_rows, dtype)
        steps = [(i, d.add_log_prob, b) for i, (d, b) in enumerate(zip(self.distributions, blocks, strict=True))]
        if to_choose and (screening := [i for i, d in enumerate(self.distributions) if d.can_screen_classes]):
            i, _, block = steps.pop(screening[0])  # last, when the scores of the others are known
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
    """Apply a method of a model to blocks; the error of an unusable value names its column and row."""
    try:
        return method(model, blocks)
    except UnusableValueError as error:
        raise unusable(columns[error.block], blocks[error.block]) from None


def estimate_model(counts: ModelCounts, settings: Settings | None = None) -> Model:
    """Turn counts into a model: priors are applied here, and can be changed without the data.

    ``param_priors`` is None (each event model's own), one prior, or a mapping from event names to priors. ``estimate``
    is one estimate, or a mapping from event names to estimates, "predictive" for the rest.
    """
    settings = settings or Settings()
    if not len(counts.labels):
        raise InputError("this model has no rows left, and so no class", remedy="count rows into it")
    how, priors = settings.estimate, settings.param_priors
    for what, given in (("param_priors", priors), ("estimate", how)):
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
    """Return the prior that the settings give an event model; None for its own."""
    if isinstance(priors, Mapping):
        priors = priors.get(event.name)
    return None if priors is None else resolve_prior(priors)


def class_log_prior(counts: ModelCounts, class_prior: Any, method: Any) -> Floats:
    """log p(class): "empirical", "uniform", a prior on the proportions, the proportions, or None for zeros."""
    k = len(counts.labels)
    if class_prior is None:
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
        return np.log(_given_proportions(class_prior, counts.labels))


def _class_proportions(counts: ModelCounts, prior: Prior | None, how: str) -> Floats:
    """Estimate the class prior as a Categorical event model of ``y``."""
    distribution = events.Categorical().estimate(counts.class_tally, prior, how)
    return distribution.log_prob(np.arange(len(counts.labels))[:, None])[:, 0]


def _given_proportions(class_prior: Any, labels: Labels) -> Floats:
    if isinstance(class_prior, Mapping):
        return parse_class_proportions(class_prior, labels)
    proportions = np.asarray(class_prior, np.float64)
    if proportions.shape != (len(labels),):
        n, k = (
            formatting.format_count(proportions.size, "proportion"),
            formatting.format_count(len(labels), "class", "classes"),
        )
        raise InputError(f"class_prior: {n} for {k} {labels.values}", value=class_prior)
    if not (proportions >= 0).all() or not np.isclose(proportions.sum(), 1.0):
        what = f"class_prior: proportions must be non-negative and sum to 1, not {proportions.tolist()}"
        raise InputError(what, value=class_prior)
    return proportions
