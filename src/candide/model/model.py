"""Model: a class prior and one distribution per block. It scores blocks of rows, and samples.

Everything is in log space. Rows are scored in chunks that stay in cache, each through all blocks and then the
log-sum-exp, on threads: blocks in, arrays out.

The score of a weighted model is a sum of terms, as in naive Bayes, but not a density: log p(x) and samples come from
the unweighted distributions of the columns. Weights are learned (:mod:`candide.weighted.learning`) from a sample of the
rows, against counts of all of them, and may be learned again without counting again. Adding two models averages their
weights by the rows that each was learned from. Removing rows from the counts does not undo their effect on the weights;
the summary notes this.
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
from candide.model.calibration import IsotonicCalibrator, LogisticCalibrator
from candide.model.counts import ModelCounts
from candide.model.plan import PlanPart
from candide.model.policy import ShiftedCalibrator, parse_class_proportions
from candide.model.settings import Settings
from candide.priors import PRIORS, Prior, resolve_prior
from candide.tally import Tally

if TYPE_CHECKING:  # imported when a model is estimated: loading one stays fast
    from candide.distributions import Distribution
    from candide.distributions.token_weights import TokenWeights

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
    # of probabilities; joint scores stay as they are
    calibrator: IsotonicCalibrator | ShiftedCalibrator | None = None

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
        return self._score(blocks, lambda joint, out: None)

    def posterior(self, blocks: Sequence[Block]) -> Floats:
        """p(class | x), (row, class). A row that is impossible under every class has the class prior."""
        if self.calibrator is not None:
            return np.exp(self.log_posterior(blocks))
        prior = np.exp(self.log_prior)
        return self._score(blocks, lambda joint, out: kernels.posterior(joint, prior))

    def log_posterior(self, blocks: Sequence[Block]) -> Floats:
        """log p(class | x), (row, class)."""
        return self._score(blocks, lambda joint, out: self._normalise(joint))

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

        return self._score(blocks, finish, keep=False, to_choose=True)

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
        self, blocks: Sequence[Block], finish: Callable, *, keep: bool = True, to_choose: bool = False
    ) -> NDArray:
        """Score rows by chunks and ``finish`` each; ``keep`` the joint array, or only what ``finish`` writes.

        ``to_choose``: only the largest class matters, so that the last distribution need not score all others.
        """
        n_rows = blocks[0].shape[0]
        out: NDArray = np.empty((n_rows, self.n_classes) if keep else n_rows, np.intp if to_choose else np.float64)
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


@dataclass(frozen=True, eq=False)
class TermWeights:
    """The weight of every term of every part of a plan, and the intercept of every class."""

    weight: tuple[Floats, ...]  # of each part, (term)
    bias: Floats  # (class) added to the log prior
    n_learned_rows: int  # that the weights were learned from
    strength: Floats  # (group) precision with which weights are held to the mean of their group
    n_counted_rows: int  # in the counts when the weights were learned
    n_removed_rows: int = 0  # removed from the counts since then
    n_uncounted_rows: int = 0  # that the weights were learned from and that were not counted
    calibrator: IsotonicCalibrator | None = None  # applied to the probabilities at last; a sum of models has none
    token_weights: "tuple[TokenWeights | None, ...]" = ()  # of each part; (): no part has token weights
    n_averaged_models: int = 1  # whose weights these are the means of
    copies: Floats | None = None  # (class,) the mean weight of an independent draw, where rows repeat; None: 1

    def apply_to(self, model: Model) -> Model:
        """The model with weighted distributions, and the intercepts added to its class prior."""
        # A model of one text column predicts the class prior for a document without known tokens: its intercepts are
        # part of what tokens contribute.
        only_text = self.token_weights and len(self.token_weights) == 1 and self.weight[0][0] != 0
        unknown = -self.bias / self.weight[0][0] if only_text else None
        distributions = tuple(
            (part if tokens is None else part.with_token_weights(tokens, unknown)).with_feature_weights(w)
            for part, w, tokens in zip(model.distributions, self.weight, self.token_weights_by_part, strict=True)
        )
        log_prior = model.log_prior + self.bias
        log_prior = log_prior - np.logaddexp.reduce(log_prior)
        return replace(model, log_prior=log_prior, distributions=distributions, calibrator=self.calibrator)

    @property
    def token_weights_by_part(self) -> "tuple[TokenWeights | None, ...]":
        return self.token_weights or (None,) * len(self.weight)

    def calibrate(self, calibrator: LogisticCalibrator | IsotonicCalibrator, log_prior: Floats) -> "TermWeights":
        """These weights with calibrated scores; ``log_prior`` is the class prior of the model."""
        if isinstance(calibrator, IsotonicCalibrator):
            return replace(self, calibrator=calibrator)
        bias = (calibrator.scale - 1.0) * log_prior + calibrator.scale * self.bias + calibrator.bias
        return replace(self, weight=tuple(calibrator.scale * w for w in self.weight), bias=bias)

    def with_labels(self, own_labels: Labels, labels: Labels) -> "TermWeights":
        """The same weights for other classes: a class that they were not learned with has an intercept of 0."""
        if own_labels == labels:
            return self
        at = [own_labels.find_code(label) for label in labels.values]
        bias = np.array([0.0 if c is None else self.bias[c] for c in at])
        copies = None if self.copies is None else np.array([1.0 if c is None else self.copies[c] for c in at])
        return replace(self, bias=bias, copies=copies, calibrator=None)

    def effective_counts(self, counts: ModelCounts) -> ModelCounts:
        """Counts of independent draws: those of each class divided by how often its rows were copied."""
        return counts if self.copies is None else counts.scale(1.0 / self.copies)

    def first_parts(self, n: int) -> "TermWeights":
        """The weights of the first n parts; each of the others must be a text, and so a group of its own."""
        strength = self.strength[: len(self.strength) - len(self.weight[n:])]
        return replace(self, weight=self.weight[:n], token_weights=self.token_weights[:n], strength=strength)

    @property
    def n_remaining_rows(self) -> int:
        """How many of the rows that they were learned from must still be counted."""
        return max(self.n_learned_rows - self.n_removed_rows, 0)

    def __add__(self, other: "TermWeights") -> "TermWeights":
        """The means of both, by the rows that each was learned from and that are still counted."""
        if not other.n_remaining_rows:
            return self
        if not self.n_remaining_rows:
            return other
        fraction = other.n_remaining_rows / (self.n_remaining_rows + other.n_remaining_rows)

        def mean(a: Floats, b: Floats) -> Floats:
            return (1 - fraction) * a + fraction * b

        parts = zip(self.token_weights_by_part, other.token_weights_by_part, strict=True)
        copies = [np.ones(len(each.bias)) if each.copies is None else each.copies for each in (self, other)]
        return TermWeights(
            tuple(map(mean, self.weight, other.weight)),
            mean(self.bias, other.bias),
            self.n_learned_rows + other.n_learned_rows,
            np.exp(mean(np.log(self.strength), np.log(other.strength))),
            max(self.n_counted_rows, other.n_counted_rows),
            self.n_removed_rows + other.n_removed_rows,
            self.n_uncounted_rows + other.n_uncounted_rows,
            n_averaged_models=self.n_averaged_models + other.n_averaged_models,
            token_weights=tuple(a if b is None else b if a is None else a.average(b, fraction) for a, b in parts),
            copies=None if self.copies is None and other.copies is None else mean(*copies),
        )

    def with_removed_rows(self, rows: int, remaining_tallies: Sequence[Tally] = ()) -> "TermWeights":
        """The same weights after rows were removed from the counts; tokens that no longer occur lose their weight."""
        tokens = self.token_weights
        if remaining_tallies:
            parts = zip(tokens, remaining_tallies, strict=True) if tokens else ()
            tokens = tuple(own and own.restrict(tally.letters, tally.starts) for own, tally in parts)  # type: ignore[attr-defined]
        return replace(self, n_removed_rows=self.n_removed_rows + rows, token_weights=tokens)

    def is_stale(self, n_counted: int) -> bool:
        """Whether rows were removed since the weights were learned, or have doubled."""
        return self.n_removed_rows > 0 or n_counted >= 2 * self.n_counted_rows

    def is_relearning_due(self, n_counted: int, n_available: int) -> bool:
        """Whether stale weights should be learned again from so many rows.

        Not from fewer rows than they were learned from, nor from fewer than there are weights.
        """
        n_weights = len(self.bias) + sum(map(len, self.weight))
        return self.is_stale(n_counted) and n_available >= max(self.n_learned_rows, n_weights)

    def training_summary(self, n_counted: int) -> str:
        """Return which rows the weights were learned on, such as "weights learned on 300 of 900 rows"."""
        n_own, plural = self.n_learned_rows - self.n_uncounted_rows, formatting.format_count
        is_part = not self.n_removed_rows and n_own <= n_counted  # weights may have been learned on removed rows
        learned = []
        if n_own or not self.n_uncounted_rows:
            learned.append(f"{n_own:,} of {plural(n_counted)}" if is_part else plural(n_own))
        if self.n_uncounted_rows:
            learned.append(f"{plural(self.n_uncounted_rows)} that were not counted")
        mean = f"averaged over {self.n_averaged_models} models, " if self.n_averaged_models > 1 else ""
        text = f"weights {mean}learned on {' and '.join(learned)}"
        if self.n_removed_rows:
            verb = "was" if self.n_removed_rows == 1 else "were"
            text += f", before {plural(self.n_removed_rows)} {verb} forgotten"
        return text if is_part else f"{text}; the counts now hold {plural(n_counted)}"


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
    names = dict.fromkeys(part.event.name for part in counts.plan.parts)
    for what, given in (("param_priors", priors), ("estimate", how)):
        for name in given if isinstance(given, Mapping) else ():
            if name not in names:
                raise unknown_name_error(f"event in {what}", name, names)
    chosen = [prior_for(part.event, priors) for part in counts.plan.parts]  # all are checked first
    distributions = []
    for (part, tally), prior in zip(counts.parts, chosen, strict=True):
        try:
            event = part.event.match_classes(counts.labels)
            distributions.append(event.estimate(tally, prior, estimate_for(event, how)))
        except CellError as error:
            raise estimation_error(error, counts.labels, part) from None
    return Model(class_log_prior(counts, settings.class_prior, how), tuple(distributions))


def estimation_error(error: CellError, labels: Labels, part: PlanPart) -> InputError:
    """The error of a class and feature, with the names of both."""
    label, column = labels.values[error.class_code], part.columns[error.feature]
    return InputError(f"class {label!r}: {error.reason}", column=column)


def prior_for(event: events.EventModel, priors: Any) -> Prior | None:
    """Return the prior that the settings give an event model; None for its own."""
    if isinstance(priors, Mapping):
        priors = priors.get(event.name)
    return None if priors is None else resolve_prior(priors)


def estimate_for(event: events.EventModel, how: Any) -> str:
    """Return the estimate that the settings give an event model."""
    return how.get(event.name, "predictive") if isinstance(how, Mapping) else how


def class_log_prior(counts: ModelCounts, class_prior: Any, method: Any) -> Floats:
    """log p(class): "empirical", "uniform", a prior on the proportions, the proportions, or None for zeros."""
    k, name = len(counts.labels), class_prior if isinstance(class_prior, str) else None
    total = counts.class_weight.sum()
    if class_prior is None:
        return np.zeros(k)
    if name == "uniform" or (name == "empirical" and not total > 0):
        return np.full(k, -np.log(k))
    if name == "empirical":
        return numerics.log_proportion(counts.class_weight, total)
    if name is not None and name not in PRIORS:
        usable = [name for name, prior in PRIORS.items() if issubclass(prior, events.Categorical.accepted_priors)]
        raise unknown_name_error("class prior", name, dict.fromkeys(["empirical", "uniform", *usable]))
    if isinstance(class_prior, str | Prior):  # the class as a categorical column
        how, prior = method if isinstance(method, str) else "mean", resolve_prior(class_prior)
        return events.Categorical().estimate(counts.class_tally, prior, how).log_prob(np.arange(k)[:, None])[:, 0]
    if isinstance(class_prior, Mapping):
        return numerics.log_or_minus_inf(parse_class_proportions(class_prior, counts.labels))
    proportions = np.asarray(class_prior, np.float64)
    if proportions.shape != (k,):
        n, classes = formatting.format_count(proportions.size, "proportion"), counts.labels.values
        what = f"class_prior: {n} for {formatting.format_count(k, 'class', 'classes')} {classes}"
        raise InputError(what, value=class_prior)
    if not (proportions >= 0).all() or not np.isclose(proportions.sum(), 1.0):
        what = f"class_prior: proportions must be non-negative and sum to 1, not {proportions.tolist()}"
        raise InputError(what, value=class_prior)
    return numerics.log_or_minus_inf(proportions)
