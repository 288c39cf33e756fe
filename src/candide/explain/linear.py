"""Linear and quadratic forms: a model as weights and an intercept, with squares where it is quadratic.

Naive Bayes is a linear classifier wherever the log-odds of every column are linear: Gaussian columns with a variance
that the classes share, booleans, categories, counts. Then ``w . x + b > 0`` predicts the same as the model.

For two classes the weights are those of the second against the first, (1, inputs) as in scikit-learn; for more, one row
per class, and the largest wins. A missing value contributes nothing (of columns modelled together a row needs all: its
decision is NaN); a level that was never counted has a weight, ``soil=<unseen>``, by the prior.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.distributions.score_form import ScoreForm
from candide.errors import InputError
from candide.model.model import Model
from candide.model.plan import PlanPart

BlockReader = Callable[[Any], Sequence[Any]]  # rows -> the model's blocks


@dataclass(frozen=True, eq=False)
class LinearForm:
    """score = coef . z + intercept, z the inputs that ``design`` reads from rows."""

    names: tuple[str, ...]  # of the inputs
    classes: tuple[Any, ...]
    coef: Floats  # (1, input) for two classes: the second against the first; otherwise (class, input)
    intercept: Floats  # (1,) or (class,)
    column_intercepts: tuple[Floats, ...]  # of each block, (1 or class, unit): the part of each column
    forms: tuple[ScoreForm, ...]
    blocks: BlockReader
    prior: Floats  # as the intercept, of the class prior: for rows that are impossible under every class

    def design(self, rows: Any) -> Any:
        """(row, input) Return the inputs: NaN where a number is missing; sparse where the rows are, or for text."""
        blocks = self.blocks(rows)
        z = [form.inputs(block) for form, block in zip(self.forms, blocks, strict=True)]
        if all(isinstance(block, np.ndarray) for block in blocks):
            return np.hstack([part if isinstance(part, np.ndarray) else part.toarray() for part in z])
        from scipy.sparse import csr_array, hstack

        return csr_array(hstack([csr_array(part) for part in z]))

    def decision_function(self, rows: Any) -> Floats:
        """(row,) Return log p(second | x) - log p(first | x); for more classes (row, class) log p up to a constant."""
        blocks, at = self.blocks(rows), 0
        out = np.tile(self.intercept, (blocks[0].shape[0], 1))
        for form, block, base in zip(self.forms, blocks, self.column_intercepts, strict=True):
            z, is_absent = form.inputs(block), form.absent_mask(block)
            if is_absent is not None and is_absent.any():
                z = np.where(is_absent, 0.0, z) if isinstance(z, np.ndarray) else z
                out -= is_absent @ base.T
            out += self._part(z, slice(at, at + z.shape[1]))
            at += z.shape[1]
        for form, block in zip(self.forms, blocks, strict=True):
            out[form.impossible_rows(block)] = self.prior
        return out[:, 0] if len(self.classes) == 2 else out

    def _part(self, z: Any, inputs: slice) -> Floats:
        return z @ self.coef[:, inputs].T

    def classify(self, rows: Any) -> NDArray:
        """Return the class with the largest score, the first of equals."""
        score = self.decision_function(rows)
        return Labels(self.classes).array[(score > 0).astype(np.intp) if score.ndim == 1 else score.argmax(axis=1)]


@dataclass(frozen=True, eq=False)
class QuadraticForm(LinearForm):
    """score = z' A z + coef . z + intercept, with one matrix A for each class (for two classes: one)."""

    quadratic_coef: Floats = None  # type: ignore[assignment]  # (1 or class, input) the diagonal of A
    interaction_coef: tuple[tuple[int, Floats], ...] = ()  # of a joint block: its first input, (1 or class, m, m)

    @property
    def matrices(self) -> Floats:
        """(1 or class, input, input) the matrices A."""
        out = np.zeros((*self.quadratic_coef.shape, self.quadratic_coef.shape[1]))
        out[:, np.arange(out.shape[1]), np.arange(out.shape[1])] = self.quadratic_coef
        for at, block in self.interaction_coef:
            out[:, at : at + block.shape[1], at : at + block.shape[1]] += block
        return out

    def _part(self, z: Any, inputs: slice) -> Floats:
        out = super()._part(z, inputs)
        if self.quadratic_coef[:, inputs].any():
            out = out + (z * z) @ self.quadratic_coef[:, inputs].T
        for at, block in self.interaction_coef:
            if at == inputs.start:
                out = out + np.einsum("ri,kij,rj->rk", z, block, z, optimize=True)
        return out


def build_linear_form(model: Model, parts: Sequence[PlanPart], labels: Labels, blocks: BlockReader) -> LinearForm:
    """Return a model as weights and an intercept; an error names the columns where it is not linear."""
    return LinearForm(**_shared_fields(model, parts, labels, blocks, _polynomial_forms("linear", model, parts, (1,))))


def build_quadratic_form(model: Model, parts: Sequence[PlanPart], labels: Labels, blocks: BlockReader) -> QuadraticForm:
    """Return a model as squares, weights and an intercept; an error names the columns where it is not quadratic."""
    common = _shared_fields(model, parts, labels, blocks, _polynomial_forms("quadratic", model, parts, (1, 2)))
    squares, cross, at = [], [], 0
    for form in common["forms"]:
        square = np.zeros_like(form.weight) if form.degree == 1 else form.square
        if square.ndim == 3:  # columns modelled together
            diagonal, off_diagonal = np.arange(square.shape[1]), _class_contrast(square)
            off_diagonal[:, diagonal, diagonal] = 0.0
            cross.append((at, off_diagonal))
            square = square[:, diagonal, diagonal]
        squares.append(_class_contrast(square))
        at += form.weight.shape[1]
    return QuadraticForm(**common, quadratic_coef=np.hstack(squares), interaction_coef=tuple(cross))


def _shared_fields(
    model: Model, parts: Sequence[PlanPart], labels: Labels, blocks: BlockReader, forms: Sequence[Any]
) -> dict[str, Any]:
    if model.n_classes < 2:
        raise InputError(f"there is one class only, {labels.values[0]!r}; a boundary lies between at least two")
    names = []
    for part, form in zip(parts, forms, strict=True):
        columns = [name if isinstance(name, str) else f"x{name}" for name in part.columns]
        form_names = form.names(columns, part.levels)
        names += form_names
        is_infinite = ~np.isfinite(form.weight)  # where a probability is zero
        if form.constant.shape == form.weight.shape:
            is_infinite |= ~np.isfinite(form.constant)
        if is_infinite.any():
            c, j = np.argwhere(is_infinite)[0].tolist()
            what = f"{form_names[j]!r} has probability 0 or 1 in class {labels.values[c]!r}, so it has no finite weight"
            remedy = "use estimate='mean', or a prior that leaves some probability to everything"
            raise InputError(what, value=form_names[j], remedy=remedy)
    base = tuple(_class_contrast(form.constant) for form in forms)
    with np.errstate(invalid="ignore"):
        prior = _class_contrast(model.log_prior[:, None])[:, 0]
        intercept = prior + np.sum([b.sum(axis=1) for b in base], axis=0)
    return {
        "names": tuple(names),
        "classes": tuple(labels.values),
        "coef": np.hstack([_class_contrast(form.weight) for form in forms]),
        "intercept": intercept,
        "column_intercepts": base,
        "forms": tuple(forms),
        "blocks": blocks,
        "prior": prior,
    }


def _class_contrast(values: Floats) -> Floats:
    """Return (class, ...) values; of two classes those of the second against the first, (1, ...)."""
    return values[1:] - values[:1] if len(values) == 2 else values.copy()


def _polynomial_forms(what: str, model: Model, parts: Sequence[PlanPart], degrees: tuple[int, ...]) -> list[Any]:
    forms = [distribution.form() for distribution in model.distributions]
    for part, distribution, form in zip(parts, model.distributions, forms, strict=True):
        if form is None or form.degree not in degrees:
            columns = formatting.format_list(part.columns, 5)
            why, _, remedy = distribution.nonlinear_reason.partition("; ")
            problem = f"the score is not {what} in the columns {columns} ({part.event.name}): {why}"
            raise InputError(problem, value=part.columns, remedy=remedy)
    return forms
