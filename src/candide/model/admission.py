"""Admission: which sets of columns have something to say that the voices so far have not said.

Each set is asked by the score test of adding it: z = U / sqrt(I), of its terms on rows that it has not counted,

    U = sum over rows of f(y) - sum_c p_c f(c)        I = sum over rows of Var_p f

under the probabilities p of the voices so far. Sets that pass Benjamini and Hochberg's rule are admitted: among them a
share of ``FALSE`` may be there by chance.

>>> rng = np.random.default_rng(0)
>>> x, p = rng.integers(0, 2, (400, 4)), np.full((400, 2), 0.5)
>>> admit(((0, 1), (0, 2), (1, 2)), x, (2, 2, 2, 2), x[:, 1] ^ x[:, 2], p, most=9)
((1, 2),)
"""

from collections.abc import Sequence

import numpy as np

from candide.conjugate.interaction import score
from candide.model.weights import relative
from candide.numerics import normal_tail
from candide.rows.blocks import Codes, Floats

FALSE = 0.01  # the share of sets admitted that may be there by chance
LARGEST = 200_000  # cells of a set, over all classes

Sets = tuple[tuple[int, ...], ...]


def admit(
    sets: Sequence[tuple[int, ...]],
    codes: Codes,
    sizes: tuple[int, ...],
    y: Codes,
    posterior: Floats,
    weight: Floats | None = None,
    *,
    most: int,
) -> Sets:
    """The sets that are admitted, strongest first; ``codes`` (row, column), ``posterior`` (row, class) so far."""
    k = posterior.shape[1]
    cells = [np.prod([sizes[j] for j in s], dtype=float) for s in sets]
    # Of more cells than rows most are empty; all that such a set says of a row left out is that its class has one less.
    room = [s for s, n in zip(sets, cells, strict=True) if n <= min(LARGEST / k, len(y))]
    if not room:
        return ()
    z = score(np.array(room), codes, np.array(sizes), y, posterior, weight)
    if weight is not None and weight.any():
        z = z * np.sqrt(relative(weight).max()) / np.sqrt(weight.max())
    tail = normal_tail(z)
    order = np.argsort(tail, kind="stable")
    passed = np.flatnonzero(tail[order] <= FALSE * np.arange(1, len(order) + 1) / len(sets))
    return tuple(room[i] for i in order[: min(most, passed[-1] + 1 if len(passed) else 0)])


def score_test(terms: Floats, y: Codes, posterior: Floats, weight: Floats | None = None) -> Floats:
    """(voice,) z of adding each voice, whose terms are (row, class, voice), to a model with this posterior."""
    w = np.ones(len(y)) if weight is None else relative(weight)
    mean = np.einsum("nc,ncv->nv", posterior, terms)
    square = np.einsum("nc,ncv->nv", posterior, terms**2)
    gain = w @ (terms[np.arange(len(y)), y] - mean)
    return gain / np.sqrt(np.maximum(w @ (square - mean**2), 1e-9))
