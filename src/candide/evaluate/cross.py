"""Cross-validation of a source."""

from collections.abc import Sequence
from typing import Any

from candide.engines.reading import Reading
from candide.model.settings import Settings
from candide.rows import remarks
from candide.tasks import validate
from candide.tasks.validate import Validation


def cross_validate(
    source: Any,
    target: str,
    *,
    folds: int = 10,
    seed: int = 0,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    class_prior: Any = "empirical",
    estimate: Any = "predictive",
    priors: Any = None,
    select: int | str | None = None,
    **reading: Any,
) -> Validation:
    """Cross-validate without refitting: count the folds apart in one pass over a source, score them in another.

    The training counts of a fold are the sum of the others. ``folds`` and ``seed`` say how rows are divided; the rest
    is as in :func:`candide.fit`.

    >>> rows = {"size": [float(i % 10) for i in range(200)], "kind": ["a" if i % 10 < 5 else "b" for i in range(200)]}
    >>> cross_validate(rows, "kind", estimate="mle").total.accuracy
    1.0
    """
    settings = Settings(class_prior, estimate, priors, select)
    found = validate.cross_validate(
        source,
        target,
        folds=folds,
        seed=seed,
        events=events,
        drop=drop,
        weight=weight,
        settings=settings,
        reading=Reading(**reading),
    )
    remarks.warn(found.learned.remarks)
    return found
