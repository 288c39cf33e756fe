"""What a class looks like on average, as an image: training on pixels is averaging.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> from candide.plot.drawable import Drawable
>>> class_averages(Drawable.from_model(FittedModel(garden()).with_settings(estimate="mle"))).shape
Traceback (most recent call last):
    ...
candide.errors.InputError: column 'soil': its levels are no numbers, so a class has no mean of it
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.distributions import Distribution
from candide.errors import InputError
from candide.model.plan import PlanPart
from candide.plot import axis_text, style
from candide.plot.drawable import Drawable

_IMAGES_PER_ROW = 5


def class_means(model: Any, shape: Sequence[int], *, classes: Any = None, axes: Any = None) -> list[Any]:
    """The mean of each class, or the probability that a pixel is on, as an image of ``shape`` (rows, columns).

    All images share one scale, from paper to style. Returns the axes, one a class.

    >>> import candide as cd
    >>> model = cd.NaiveBayes("bernoulli").fit([[0, 1, 1, 0], [1, 0, 0, 1]], ["rising", "falling"])
    >>> axes = class_means(model, (2, 2))
    >>> [ax.get_title() for ax in axes]
    ['falling', 'rising']
    >>> axes[0].figure.clear()
    """
    drawable = Drawable.from_model(model)
    height, width = _check_shape(shape, len(drawable.columns))
    codes = list(range(len(drawable.labels)))
    if classes is not None:
        chosen = [classes] if isinstance(classes, str) or not hasattr(classes, "__len__") else classes
        codes = [drawable.class_code(value) for value in chosen]
    means = class_averages(drawable)[codes]
    axes = (
        style.make_axes(len(codes), max(_IMAGES_PER_ROW, math.isqrt(len(codes))), (1.5, 1.7))
        if axes is None
        else np.ravel(axes).tolist()
    )
    if len(axes) < len(codes):
        raise InputError(
            f"{formatting.format_count(len(codes), 'class', 'classes')} and "
            f"{formatting.format_count(len(axes), 'axis', 'axes')}; pass as many axes as classes"
        )
    low, high = float(np.nanmin(means)), float(np.nanmax(means))
    names = axis_text.shorten_names(drawable.labels, 16)
    for ax, c, mean in zip(axes, codes, means, strict=False):
        ax.imshow(mean.reshape(height, width), cmap="Greys", vmin=low, vmax=high, interpolation="nearest")
        ax.set_title(names[c], fontsize="medium")
        ax.set(xticks=[], yticks=[])
        for side in ax.spines.values():
            side.set_color(style.LIGHT)
    return axes[: len(codes)]


def _check_shape(shape: Any, n: int) -> tuple[int, int]:
    try:
        sides = [int(side) for side in shape]
    except (TypeError, ValueError):
        sides = []
    if len(sides) == 2 and min(sides) > 0 and sides[0] * sides[1] == n:
        return sides[0], sides[1]
    given = "x".join(map(str, sides)) if sides else repr(shape)
    raise InputError(
        f"shape {given}: the model has {n} columns, one a pixel; pass rows and columns whose product is {n}, "
        f"such as {suggest_shape(n)}"
    )


def suggest_shape(n: int) -> str:
    """Rows and columns of n pixels, as even as they can be."""
    near = next(a for a in range(math.isqrt(n), 0, -1) if n % a == 0)
    return f"{near}x{n // near}"


def class_averages(drawable: Drawable) -> NDArray:
    """(class, column) the value expected of each column."""
    out = np.empty((len(drawable.labels), len(drawable.columns)))
    at = {name: i for i, name in enumerate(drawable.columns)}
    for part, law in zip(drawable.fitted.plan.parts, drawable.fitted.model.distributions, strict=True):
        if not part.is_joint_term:
            out[:, [at[name] for name in part.columns]] = _expected_values(part, law.base_and_weights[0])
    return out


def _expected_values(part: PlanPart, distribution: Distribution) -> NDArray:
    values = [_level_numbers(part, j) for j in range(len(part.columns))] if distribution.block_kind == "codes" else ()
    try:
        mean = distribution.mean(*([values] if values else ()))
    except InputError:
        mean = np.full((distribution.n_classes, distribution.n_features), np.nan)
    if not np.isfinite(mean).all():
        raise InputError(
            f"it is {part.event.name or type(part.event).__name__}, of which no mean is known",
            column=part.columns[0],
            remedy="draw its densities, or use estimate='mean'",
        )
    return mean


def _level_numbers(part: PlanPart, j: int) -> NDArray:
    """The levels of a column as the numbers that they are."""
    try:
        encoding = part.encodings[j]
        return np.asarray(encoding.decode(np.arange(encoding.n_levels or 0)), np.float64)
    except (TypeError, ValueError):
        raise InputError("its levels are no numbers, so a class has no mean of it", column=part.columns[j]) from None
