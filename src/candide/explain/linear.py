"""Forms: a model as weights and a bias, where its score is linear; with squares, where it is quadratic.

Naive Bayes is a linear classifier wherever the log-odds of every column are linear: Gaussian columns with a variance
that the classes share, yes and no, categories, counts. Then ``w . x + b > 0`` says the same as the model.

Of two classes the weights are those of the second against the first, (1, inputs) as in scikit-learn; of more, one row
a class, and the largest wins. Where a value is absent its column adds nothing (of columns modelled together a row
needs all: its decision is NaN); a level that was never counted has a weight of its own, ``soil=<unseen>``, for the
share that the prior keeps for it.

>>> import candide as cd
>>> X = {"height": [1.0, 2.0, 5.0, 6.0], "soil": ["clay", "clay", "sand", "clay"]}
>>> model = cd.NaiveBayes({"height": cd.events.Gaussian(covariance="tied-diagonal")}, estimate="mean")
>>> form = model.fit(X, ["a", "a", "b", "b"]).linear()
>>> form.names, form.coef.shape
(('height', 'soil=clay', 'soil=sand', 'soil=<unseen>'), (1, 4))
>>> bool(form.decision_function({"height": [5.5], "soil": ["sand"]})[0] > 0)
True
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
    coef: Floats  # (1, input) of two classes: the second against the first; else (class, input)
    intercept: Floats  # (1,) or (class,)
    column_intercepts: tuple[
        Floats, ...
    ]  # a block each, (1 or class, unit): the part of the intercept that falls to each column
    forms: tuple[ScoreForm, ...]
    blocks: BlockReader
    prior: Floats  # as the intercept, of rows that no class can have: what the class prior says

    def design(self, rows: Any) -> Any:
        """(row, input) numbers: NaN where a number is absent; sparse where the rows are, or hold text."""
        blocks = self.blocks(rows)
        z = [form.inputs(block) for form, block in zip(self.forms, blocks, strict=True)]
        if all(isinstance(block, np.ndarray) for block in blocks):
            return np.hstack([part if isinstance(part, np.ndarray) else part.toarray() for part in z])
        from scipy.sparse import csr_array, hstack

        return csr_array(hstack([csr_array(part) for part in z]))

    def decision_function(self, rows: Any) -> Floats:
        """(row,) log p(second | x) - log p(first | x) of two classes; else (row, class) log p but for a common term."""
        blocks, at = self.blocks(rows), 0
        out = np.tile(self.intercept, (blocks[0].shape[0], 1))
        for form, block, base in zip(self.forms, blocks, self.column_intercepts, strict=True):
            z, gone = form.inputs(block), form.absent_mask(block)
            if gone is not None and gone.any():
                z = np.where(gone, 0.0, z) if isinstance(z, np.ndarray) else z
                out -= gone @ base.T
            out += self._part(z, slice(at, at + z.shape[1]))
            at += z.shape[1]
        for form, block in zip(self.forms, blocks, strict=True):
            out[form.impossible_rows(block)] = self.prior
        return out[:, 0] if len(self.classes) == 2 else out

    def _part(self, z: Any, inputs: slice) -> Floats:
        return z @ self.coef[:, inputs].T

    def classify(self, rows: Any) -> NDArray:
        """The class that wins; the first of equals."""
        score = self.decision_function(rows)
        return Labels(self.classes).array[(score > 0).astype(np.intp) if score.ndim == 1 else score.argmax(axis=1)]


@dataclass(frozen=True, eq=False)
class QuadraticForm(LinearForm):
    """score = z' A z + coef . z + intercept, with one matrix A a class (of two classes: one)."""

    quadratic_coef: Floats = None  # type: ignore[assignment]  # (1 or class, input) the diagonal of A
    interaction_coef: tuple[
        tuple[int, Floats], ...
    ] = ()  # of inputs modelled together: the first, and (1 or class, m, m)

    @property
    def matrices(self) -> Floats:
        """(1 or class, input, input) the matrices A written out."""
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
    """The model as weights and a bias; an error that names the columns and the remedy where it is not linear."""
    return LinearForm(**_shared_fields(model, parts, labels, blocks, _polynomial_forms("linear", model, parts, (1,))))


def build_quadratic_form(model: Model, parts: Sequence[PlanPart], labels: Labels, blocks: BlockReader) -> QuadraticForm:
    """The model as squares, weights and a bias; an error that names the columns where it has no such form."""
    common = _shared_fields(model, parts, labels, blocks, _polynomial_forms("quadratic", model, parts, (1, 2)))
    squares, cross, at = [], [], 0
    for form in common["forms"]:
        square = np.zeros_like(form.weight) if form.degree == 1 else form.square
        if square.ndim == 3:  # columns modelled together: the diagonal, and what is beside it
            diagonal = np.arange(square.shape[1])
            rest = _class_contrast(square)
            rest[:, diagonal, diagonal] = 0.0
            cross.append((at, rest))
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
        mine = form.names([_display_name(name) for name in part.columns], part.levels)
        _refuse_infinite(form, mine, labels)
        names += mine
    base = tuple(_class_contrast(form.constant) for form in forms)
    with np.errstate(invalid="ignore"):
        prior = _class_contrast(model.log_prior[:, None])[:, 0]
        intercept = prior + np.sum([b.sum(axis=1) for b in base], axis=0)
    coef = np.hstack([_class_contrast(form.weight) for form in forms])
    return {
        "names": tuple(names),
        "classes": tuple(labels.values),
        "coef": coef,
        "intercept": intercept,
        "column_intercepts": base,
        "forms": tuple(forms),
        "blocks": blocks,
        "prior": prior,
    }


def _class_contrast(values: Floats) -> Floats:
    """(class, ...) values; of two classes the second's against the first's, (1, ...)."""
    return values[1:] - values[:1] if len(values) == 2 else values.copy()


def _display_name(name: Any) -> str:
    return name if isinstance(name, str) else f"x{name}"


def _polynomial_forms(what: str, model: Model, parts: Sequence[PlanPart], degrees: tuple[int, ...]) -> list[Any]:
    """The forms of all parts, which must be polynomials of one of these degrees."""
    forms = []
    for part, law in zip(parts, model.distributions, strict=True):
        form = law.form()
        if form.degree not in degrees:
            named = formatting.format_list(part.columns, 5)
            why, _, remedy = law.nonlinear_reason.partition("; ")
            raise InputError(
                f"the score is not {what} in the columns {named} ({part.event.name}): {why}",
                value=part.columns,
                remedy=remedy,
            )
        forms.append(form)
    return forms


def _refuse_infinite(form: Any, names: Sequence[str], labels: Labels) -> None:
    """A probability of zero has no finite weight."""
    bad = ~np.isfinite(form.weight)
    if form.constant.shape == form.weight.shape:
        bad |= ~np.isfinite(form.constant)
    if bad.any():
        c, j = np.argwhere(bad)[0].tolist()
        raise InputError(
            f"{names[j]!r} has probability 0 or 1 in class {labels.values[c]!r}, so it has no finite weight",
            value=names[j],
            remedy="use estimate='mean', or a prior that leaves some probability to everything",
        )
