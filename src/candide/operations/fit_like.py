"""Learning alike: another source counted as a model was, so that the two add. Bins, laws and weights are its own.

>>> from candide.operations.fit import fit_model
>>> june = {"size": [1.0, 1.2, 3.1, 3.3] * 9, "fruit": ["plum", "plum", "pear", "pear"] * 9}
>>> july = {"size": [1.1, 2.9, 3.7], "fruit": ["plum", "pear", "fig"]}
>>> model = fit_model(june, "fruit", model="bayes").fitted
>>> (model + fit_model(july, "fruit", like=model).fitted).counts.class_weight.tolist()
[1.0, 19.0, 19.0]
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from candide.data.sample import Sample
from candide.engines.base import CountResult, LabelledSource, PreparedSource, Source, Watch
from candide.engines.draw_sample import draw_sample
from candide.errors import InputError
from candide.model.settings import Settings
from candide.store.models import resolve_plan
from candide.weighted.fit import learn_weights_from_sample


def resolve_model_kind(like: Any, model: str) -> str:
    """What kind of model is made like another: the same; ``model`` where ``like`` is a plan, or nothing."""
    known = None if like is None else resolve_plan(like)[1]
    if model == "naive" and known is not None and known.term_weights is not None:
        remedy = "leave the model out, or pass one like it that is naive"
        raise InputError("naive Bayes cannot be like a model of weighted voices", value=model, remedy=remedy)
    return model if known is None else "naive" if known.term_weights is None else "bayes"


def refuse_plan_options(events: Any, drop: Sequence[str]) -> None:
    """Refuse to be told how columns are counted, which ``like`` says."""
    if events != "auto" or drop:
        what = "like says which columns are counted, and how"
        raise InputError(what, value=list(drop) or events, remedy="leave events and drop out, or like")


def count_source_like(
    source: Source, target: str, like: Any, weight: str | None, settings: Settings, weighted: bool, watch: Watch
) -> tuple[PreparedSource, CountResult, dict[str, Any], Sample | None]:
    """What is counted for a model like another; its weights, and what estimator it is; the rows looked at."""
    from candide.engines.counting import count_source
    from candide.engines.planning import prepare_like
    from candide.weighted.fit import make_estimator_record

    plan, known = resolve_plan(like)
    if weighted:
        source.materialise()  # the rows looked at are among those counted
    prepared = prepare_like(
        source, plan, target, weight, *(() if known is None else (known.text_formats, known.temporal))
    )
    rows, seen = LabelledSource(source, target, weight), None
    if weighted:
        with watch(source, "looking"):
            seen = draw_sample(rows, prepared)
    with watch(source, "counting"):
        counted = count_source(rows, prepared)
    census = counted.fold_counts[0] if known is None else counted.fold_counts[0].match_labels(known.counts)
    counted = replace(counted, fold_counts=[census])
    if seen is None:
        return prepared, counted, {}, None
    voices = learn_weights_from_sample(seen, census, settings)
    return (
        prepared,
        counted,
        {"term_weights": voices, "estimator": make_estimator_record(settings, "auto", prepared)},
        seen,
    )
