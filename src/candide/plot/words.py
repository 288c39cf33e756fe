"""A column of text given the class: the terms that speak most for each class, by their log-odds.

>>> import candide as cd
>>> texts, y = ["free prize", "see you", "free call", "you see"], ["spam", "ham", "spam", "ham"]
>>> model = cd.TextNB(weights=None).fit(texts, y)
>>> [(c, term, round(odds, 2)) for c, term, odds in class_words(Drawable.from_model(model), "text", 2)]
[(0, 'see', 1.1), (1, 'free', 1.1)]
"""

from typing import Any

import numpy as np

from candide.data.table import Name
from candide.explain.columns import iterate_conditionals
from candide.explain.words import top_words
from candide.plot import axis_labels, style
from candide.plot.drawable import Drawable

_MAX_WORDS = 16  # terms, where that is one a class at least
_MAX_WORDS_MANY_CLASSES = 24  # and where classes are many


def class_words(drawable: Drawable, column: Name, limit: int = _MAX_WORDS) -> list[tuple[int, str, float]]:
    """(class, term, log-odds for it), class by class: against all others, or without counts against the next class."""
    asked, k = drawable.fitted, len(drawable.labels)
    if asked.has_counts:
        with np.errstate(divide="ignore"):  # the odds of no terms at all
            tops = [top_words(asked, column, label, max(1, limit // k)) for label in drawable.labels]
        found = [(c, one.word, one.log_odds) for c, top in enumerate(tops) for one in top if one.log_odds > 0]
    else:
        given = next(one for one in iterate_conditionals(asked, limit) if one.column == column)
        shares = np.maximum(given.values, 1e-300)  # (term, class)
        first = shares.argmax(axis=1)
        beside = np.where(np.arange(k) == first[:, None], 1e-300, shares).max(axis=1, initial=1e-300)
        odds = np.log(shares.max(axis=1, initial=1e-300) / beside)
        found = sorted(zip(first.tolist(), given.row_names, odds.tolist(), strict=True), key=lambda one: one[0])
    strong = sorted(found, key=lambda one: -one[2])[: max(_MAX_WORDS_MANY_CLASSES, limit)]
    return found if len(strong) == len(found) else sorted(strong, key=lambda one: one[0])


def draw_words(ax: Any, drawable: Drawable, column: Name) -> None:
    """A bar a term, in the colour of the class it speaks for."""
    found = class_words(drawable, column)
    classes = axis_labels.shorten_names(drawable.labels)
    for c, label in enumerate(classes):
        mine = [(at, odds) for at, (owner, _, odds) in enumerate(found) if owner == c]
        if mine:
            ax.barh(*zip(*mine, strict=True), 0.8, color=style.colour(c), label=label, zorder=2)
    if not found:
        ax.text(0.5, 0.5, "no named term tells the classes apart", ha="center", transform=ax.transAxes)
    ax.set_yticks(
        range(len(found)), axis_labels.shorten_names([term for _, term, _ in found], 20), fontsize=_size(found)
    )
    for at, (owner, _, _) in enumerate(
        found if len(classes) > style.MAX_LEGEND_CLASSES else ()
    ):  # more than a legend tells apart
        place = {"xycoords": ax.get_yaxis_transform(), "va": "center", "fontsize": _size(found)}
        ax.annotate(classes[owner], (1.01, at), **place)
    ax.invert_yaxis()
    style.format_axes(ax, f"{axis_labels.column_title(column, 30)}: log-odds of a term for its class")
    ax.grid(False, axis="y")


def _size(found: list[Any]) -> float:
    return 8 if len(found) <= _MAX_WORDS else 6.5
