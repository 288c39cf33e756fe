"""Learning alike: another source counted as a model was, so that the two add. Bins, laws and weights are its own.

>>> from candide.tasks.learn import learn
>>> june = {"size": [1.0, 1.2, 3.1, 3.3] * 9, "fruit": ["plum", "plum", "pear", "pear"] * 9}
>>> july = {"size": [1.1, 2.9, 3.7], "fruit": ["plum", "pear", "fig"]}
>>> model = learn(june, "fruit", model="bayes").fitted
>>> (model + learn(july, "fruit", like=model).fitted).census.class_weight.tolist()
[1.0, 19.0, 19.0]
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from candide.engines.base import Counted, Prepared, Rows, Source, Watch
from candide.errors import InputError
from candide.model.settings import Settings
from candide.tasks.look import Look, look
from candide.tasks.models import plan_like
from candide.tasks.weigh import weigh_by


def model_like(like: Any, model: str) -> str:
    """What kind of model is made like another: the same; ``model`` where ``like`` is a plan, or nothing."""
    known = None if like is None else plan_like(like)[1]
    if model == "naive" and known is not None and known.voices is not None:
        remedy = "leave the model out, or pass one like it that is naive"
        raise InputError("naive Bayes cannot be like a model of weighted voices", value=model, remedy=remedy)
    return model if known is None else "naive" if known.voices is None else "bayes"


def refuse_plans(events: Any, drop: Sequence[str]) -> None:
    """Refuse to be told how columns are counted, which ``like`` says."""
    if events != "auto" or drop:
        what = "like says which columns are counted, and how"
        raise InputError(what, value=list(drop) or events, remedy="leave events and drop out, or like")


def counted_like(
    source: Source, target: str, like: Any, weight: str | None, settings: Settings, weighted: bool, watch: Watch
) -> tuple[Prepared, Counted, dict[str, Any], Look | None]:
    """What is counted for a model like another; its weights, and what estimator it is; the rows looked at."""
    from candide.engines.count import count
    from candide.engines.prepare import prepare_like
    from candide.tasks.learn import recorded

    plan, known = plan_like(like)
    if weighted:
        source.materialise()  # the rows looked at are among those counted
    prepared = prepare_like(source, plan, target, weight, *(() if known is None else (known.spelled, known.temporal)))
    rows, seen = Rows(source, target, weight), None
    if weighted:
        with watch(source, "looking"):
            seen = look(rows, prepared)
    with watch(source, "counting"):
        counted = count(rows, prepared)
    census = counted.censuses[0] if known is None else counted.censuses[0].like(known.census)
    counted = replace(counted, censuses=[census])
    if seen is None:
        return prepared, counted, {}, None
    voices = weigh_by(seen, census, settings)
    return prepared, counted, {"voices": voices, "estimator": recorded(settings, "auto", prepared)}, seen
