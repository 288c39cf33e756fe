"""Cross-validation of a source, and the evaluation of a model on rows whose labels are known."""

from collections.abc import Mapping, Sequence
from typing import Any

from candide import operations
from candide.data import notes
from candide.engines.reading import ReadOptions
from candide.estimators.options import split_options
from candide.metrics.scores import Scores
from candide.model.policy import PolicyLike
from candide.model.settings import DEFAULT_MODEL, default_settings
from candide.validation.comparison import SettingsComparison
from candide.validation.cross_validation import Validation


def cross_validate(
    source: Any,
    target: str,
    *,
    model: str = DEFAULT_MODEL,
    folds: int = 10,
    seed: int = 0,
    fold_by: str | None = None,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    policy: PolicyLike = None,
    **options: Any,
) -> Validation:
    """Cross-validate without refitting: count the folds apart in one pass over a source, score them in another.

    The training counts of a fold are the sum of the others, and what only the fold itself holds is unknown to its
    model, so that the scores are those of refitting. Of the model "bayes" the bins, pairs and weights of a fold come
    from the other folds as well; the grids of numbers, which no label has a part in, are learned once. ``folds`` and
    ``seed`` say how rows are divided; with ``fold_by``, a column of whole numbers or text, rows of one value stay
    together, and it is no feature; ``policy`` decides, where given; the rest is as in :func:`candide.fit`.

    >>> rows = {"size": [float(i % 10) for i in range(200)], "kind": ["a" if i % 10 < 5 else "b" for i in range(200)]}
    >>> cross_validate(rows, "kind", model="naive", estimate="mle").total.accuracy
    1.0
    """
    settings, reading = split_options(
        options, default_settings(model), ("model", "folds", "seed", "fold_by", "events", "drop", "weight", "policy")
    )
    found = operations.cross_validate(
        source,
        target,
        model=model,
        folds=folds,
        seed=seed,
        fold_by=fold_by,
        events=events,
        drop=drop,
        weight=weight,
        policy=policy,
        settings=settings,
        reading=reading,
    )
    notes.issue_warnings(found.fit_result.notes)
    return found


def compare(
    source: Any,
    target: str,
    settings: Mapping[str, Mapping[str, Any]],
    *,
    folds: int = 10,
    seed: int = 0,
    fold_by: str | None = None,
    weight: str | None = None,
    **reading: Any,
) -> SettingsComparison:
    """Cross-validate several settings on the same folds, and tell which differences are more than chance.

    ``settings`` has by name what :func:`cross_validate` takes: ``model``, ``events``, ``drop``, and what turns counts
    into a model. The others are compared with the first.

    >>> from candide.demo import garden_rows
    >>> plants, herb = garden_rows(300, seed=0)
    >>> table = {**plants, "herb": herb}
    >>> found = compare(table, "herb", {"all": {"model": "naive"}, "one": {"model": "naive", "select": 1}}, folds=5)
    >>> [(one.metric, round(one.mean, 2), one.is_significant) for one in found.differences if one.metric == "accuracy"]
    [('accuracy', -0.11, True)]
    """
    variants = dict[str, dict[str, Any]]()
    own = ("model", "events", "drop")
    for name, words in settings.items():
        kind = words.get("model", DEFAULT_MODEL)
        known = {word: words[word] for word in own if word in words}
        rest = {word: value for word, value in words.items() if word not in own}
        variants[name] = {**known, "settings": split_options(rest, default_settings(kind), own)[0]}
    how: dict[str, Any] = {"folds": folds, "seed": seed, "fold_by": fold_by, "weight": weight}
    how["reading"] = ReadOptions(**reading)
    return operations.compare_settings(source, target, variants, **how)


def evaluate(
    model: Any,
    source: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    policy: PolicyLike = None,
    **reading: Any,
) -> Scores:
    """Score a model on a source whose labels are known: accuracy, log-loss and the like.

    The model is a fitted estimator, or the path of a model file. ``target`` names the column of the labels, where the
    model does not; ``weight`` that of row weights; ``policy`` decides in the place of the model's own; how the source
    is read is said as in :func:`candide.fit`.

    >>> import candide as cd
    >>> rows = {"size": [1.0, 2.0, 8.0, 9.0], "kind": ["a", "a", "b", "b"]}
    >>> evaluate(cd.fit(rows, "kind"), rows).accuracy
    1.0
    """
    return operations.evaluate(model, source, target, weight=weight, policy=policy, reading=ReadOptions(**reading))
