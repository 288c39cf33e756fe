"""Use and change models: predict, explain, evaluate, monitor, update, merge, report and export."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from typing import TYPE_CHECKING, Any

from candide.engines.reading import ReadOptions
from candide.errors import InputError, unknown_name_error
from candide.files import check_output
from candide.model.settings import Settings, WeightedSettings, default_settings
from candide.store.container import is_model_file
from candide.store.file import ModelLike, load_fitted

if TYPE_CHECKING:
    from candide.decisions.prior_shift import AdaptedModel
    from candide.explain.rows import ExplainedRow
    from candide.metrics.scores import Scores
    from candide.model.fitted import FittedModel
    from candide.monitoring.drift import Drift
    from candide.monitoring.model_diff import ModelComparison
    from candide.report.summary import ModelSummary, PlotSummary, ReportSummary, TextSummary
    from candide.store.update import Destination, RowsToCount, UpdateResult

Path = str | os.PathLike
_INTERNAL_NAMES = ("ignored", "watch", "warn")  # options for callers in the package: an error does not list them
_WEIGHTED_NAMES = ("terms", "sample_rows", "random_state")  # the other WeightedSettings are parameters or Settings


def predict_table(
    model: ModelLike, data: Any, out: Path | None = None, *, keep: str | Sequence[str] = (), **options: Any
) -> Any:
    """Score a source in a stream: into a file, returning the number of rows, or into an Arrow table.

    The columns are those to ``keep`` (``"all"`` for all), then ``prediction``, ``p_<class>`` of every class, and
    ``log_density``. ``policy`` replaces that of the model; where it abstains, the prediction is missing. ``intervals``
    is a level such as 0.95: it adds credible intervals of the probabilities (naive Bayes models only).

    >>> import candide as cd
    >>> model = cd.NaiveBayes().fit({"size": [1.0, 1.2, 3.1, 2.9]}, ["sage", "sage", "thyme", "thyme"])
    >>> cd.predict_table(model, {"size": [1.1, 3.0]})["prediction"].to_pylist()
    ['sage', 'thyme']
    """
    from candide.engines import predictions

    kwargs = _split_options(options, predict_table, "force", "policy", "intervals", "watch")
    check_output(out, model, data, is_own_file=predictions.is_scored_file, force=kwargs.get("force", False))
    return predictions.predict_table(_load_to_predict(model), data, out=out, keep=keep, **kwargs)


def predict_text(model: ModelLike, text: str, *, policy: Any = None) -> "TextSummary":
    """Score one document, and list the words that contribute most.

    >>> import candide as cd
    >>> model = cd.TextNB().fit(["free money now", "see you at lunch", "money for free"], ["spam", "ham", "spam"])
    >>> cd.predict_text(model, "free lunch money").prediction
    'spam'
    """
    from candide.report.summary import summarize_text

    return summarize_text(_load_to_predict(model).with_policy(policy), text)


def explain_rows(
    model: ModelLike, data: Any, rows: Sequence[int | tuple[int, int]] = (1,), *, by: str = "term", **options: Any
) -> "Iterator[ExplainedRow]":
    """Explain the predictions of rows, and of ranges of rows, counted from 1.

    ``by="column"`` divides the contribution of a joint term among its columns.

    >>> import candide as cd
    >>> rows = {"size": [1.0, 1.2, 3.1, 2.9], "herb": ["sage", "sage", "thyme", "thyme"]}
    >>> [row] = cd.explain_rows(cd.fit(rows, "herb", model="naive"), rows, rows=[3])
    >>> row.label, row.decision.prediction
    ('thyme', 'thyme')
    """
    from candide.explain import rows as explaining

    return explaining.explain_rows(_load_to_predict(model), data, rows, by=by, **_split_options(options, explain_rows))


def evaluate(model: ModelLike, data: Any, target: str | None = None, *, policy: Any = None, **options: Any) -> "Scores":
    """Score a model on labelled rows: accuracy, log-loss and the other metrics.

    ``target`` names the column of the labels if the model does not; ``policy`` replaces that of the model. Rows
    without a label, or with one that the model does not know, are left out with a warning.

    >>> import candide as cd
    >>> rows = {"size": [1.0, 2.0, 8.0, 9.0], "kind": ["a", "a", "b", "b"]}
    >>> cd.evaluate(cd.fit(rows, "kind"), rows).accuracy
    1.0
    """
    from candide.validation import evaluation

    kwargs = _split_options(options, evaluate, "weight", "watch")
    return evaluation.evaluate(_load_to_predict(model), data, target, policy=policy, **kwargs)


def detect_drift(model: ModelLike, data: Any, *, before: Any = None, **options: Any) -> "Drift":
    """Compare new, unlabelled rows with the training data of a model, column by column and by log p(x).

    ``before`` are training rows, where available; otherwise log p(x) is compared with rows drawn from the model, which
    are likelier than real ones where columns depend on each other.

    >>> import candide as cd
    >>> model = cd.NaiveBayes().fit({"size": [1.0, 1.2, 3.1, 2.9] * 5}, ["sage", "sage", "thyme", "thyme"] * 5)
    >>> [column.column for column in cd.detect_drift(model, {"size": [9.0, 9.1, 8.8, 9.4] * 5}).drifted_columns]
    ['size']
    """
    from candide.monitoring import drift

    return drift.detect_drift(load_fitted(model), data, before=before, **_split_options(options, detect_drift, "watch"))


def diff_models(before: ModelLike, after: ModelLike, limit: int = 12) -> "ModelComparison":
    """List the differences between two models in classes, columns and levels, largest first, ``limit`` of each.

    >>> import candide as cd
    >>> first, second = ({"size": [1.0, 1.2, x, 2.9], "herb": ["sage", "sage", "dill", "dill"]} for x in (3.1, 9.0))
    >>> cd.diff_models(cd.fit(first, "herb", model="naive"), cd.fit(second, "herb", model="naive")).columns[0].column
    'size'
    """
    from candide.monitoring import model_diff

    return model_diff.diff_models(before, after, limit)


def adapt_prior(
    model: ModelLike, data: Any, out: Path | None = None, *, force: bool = False, **options: Any
) -> "AdaptedModel":
    """Re-estimate the class prior of a model from unlabelled rows by EM (Saerens et al., 2002).

    This is valid if p(x | class) has not changed, which :func:`detect_drift` helps to see.

    >>> import candide as cd
    >>> model = cd.NaiveBayes().fit({"size": [1.0, 1.2, 3.1, 2.9] * 5}, ["sage", "sage", "thyme", "thyme"] * 5)
    >>> adapted = cd.adapt_prior(model, {"size": [3.0, 3.1, 3.2, 1.1]})
    >>> {label: round(p, 2) for label, p in adapted.proportions_after.items()}
    {'sage': 0.25, 'thyme': 0.75}
    """
    from candide.decisions import prior_shift

    check_output(out, model, data, is_own_file=is_model_file, force=force)
    adapted = prior_shift.adapt_prior(load_fitted(model), data, **_split_options(options, adapt_prior, "watch"))
    _save_model(adapted.fitted, out, force)
    return adapted


def update_model(
    model: ModelLike, data: Any, out: Path | None = None, *, scale: float = 1.0, **options: Any
) -> "UpdateResult":
    """Count more rows into a model; new classes and levels may appear.

    A model given by its path is changed in its file, under a lock, unless ``out`` is given. ``scale`` multiplies the
    earlier counts: 0.99 forgets one percent of them.

    >>> import candide as cd
    >>> model = cd.fit({"size": [1.0, 1.2, 3.1, 3.3], "fruit": ["plum", "plum", "pear", "pear"]}, "fruit")
    >>> change = cd.update_model(model, {"size": [1.1, 3.0], "fruit": ["plum", "fig"]})
    >>> change.fitted.counts.class_weight.tolist(), change.n_rows, [new.label for new in change.new_classes]
    ([1.0, 2.0, 3.0], 2, ['fig'])
    """
    from candide.store import update

    return update.add_rows(*_change(model, data, out, options, update_model), scale)


def forget_rows(model: ModelLike, data: Any, out: Path | None = None, **options: Any) -> "UpdateResult":
    """Subtract rows from a model, as if they had never been counted.

    Classes, levels and words that no other row has are forgotten, unless they were declared. Rows that the counts rule
    out are an error, and the model stays as it is. Counts cannot prove that a row was counted.

    >>> import candide as cd
    >>> model = cd.fit({"size": [1.0, 1.2, 3.1], "herb": ["sage", "sage", "thyme"]}, "herb", model="naive")
    >>> cd.forget_rows(model, {"size": [1.0], "herb": ["sage"]}).fitted.counts.n_rows
    2
    """
    from candide.store import update

    return update.remove_rows(*_change(model, data, out, options, forget_rows))


def slide_window(model: ModelLike, add: Any, remove: Any, out: Path | None = None, **options: Any) -> "UpdateResult":
    """Count new rows into a model and old rows out of it, in one change.

    >>> import candide as cd
    >>> model = cd.fit({"size": [1.0, 1.2, 3.1], "herb": ["sage", "sage", "thyme"]}, "herb", model="naive")
    >>> old, new = {"size": [1.0], "herb": ["sage"]}, {"size": [3.3, 3.0], "herb": ["thyme", "thyme"]}
    >>> cd.slide_window(model, add=new, remove=old).fitted.counts.n_rows
    4
    """
    from candide.store import update

    return update.replace_rows(*_change(model, add, out, options, slide_window), remove)


def reweight_model(
    model: ModelLike,
    data: Any,
    out: Path | None = None,
    *,
    rows_are_new: bool = False,
    sample_rows: int = 20_000,
    seed: int = 0,
    **options: Any,
) -> "UpdateResult":
    """Learn the weights of a model's terms again, from rows that it has counted, against its current counts.

    A sample of at most ``sample_rows`` is drawn with ``seed``. Each row is left out of the counts while it is used,
    unless ``rows_are_new``. Rows that cannot have been counted are an error.

    >>> import candide as cd
    >>> rows = {"size": [1.0, 1.2, 3.1, 2.9] * 5, "herb": ["sage", "sage", "thyme", "thyme"] * 5}
    >>> cd.reweight_model(cd.fit(rows, "herb"), rows).fitted.term_weights.n_learned_rows
    20
    """
    from candide.store import update

    change = _change(model, data, out, options, reweight_model)
    return update.relearn_weights(*change, are_new=rows_are_new, max_rows=sample_rows, seed=seed)


def merge_models(
    models: Sequence[ModelLike], out: Path | None = None, *, detail: str | None = None, force: bool = False
) -> "FittedModel":
    """Add models: the sum is the model of all their rows, with the union of their classes and levels.

    >>> import candide as cd
    >>> model = cd.NaiveBayes().fit({"size": [1.0, 1.2, 3.1]}, ["plum", "plum", "pear"])
    >>> merge_models([model, model]).counts.n_rows
    6
    """
    from candide.store import update

    return update.add_models(models, out, detail, force)


def describe_model(
    model: ModelLike, max_levels: int = 12, *, classes: Sequence[Any] = (), columns: Sequence[Any] = ()
) -> "ModelSummary":
    """Summarise a model: the class prior, the terms, and every column given the class, or some columns and classes.

    >>> import candide as cd
    >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [9.0], [8.0]], ["a", "a", "b", "b"])
    >>> [(given.label, given.proportion) for given in cd.describe_model(model).classes]
    [('a', 0.5), ('b', 0.5)]
    """
    from candide.report.summary import summarize_model

    return summarize_model(load_fitted(model), max_levels, classes=classes, columns=columns)


def write_report(
    model: ModelLike,
    data: Any = None,
    out: Path | None = None,
    target: str | None = None,
    *,
    force: bool = False,
    **options: Any,
) -> "ReportSummary":
    """Write a report of a model into ``out``, one HTML file that needs no network, evaluated on ``data`` if given.

    Sections that cannot be made are left out, and the report lists them. ``full=True`` saves no space.

    >>> import os, tempfile, candide as cd
    >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [9.0]], ["a", "a", "b"])
    >>> cd.write_report(model, out=os.path.join(tempfile.mkdtemp(), "report.html")).size_bytes > 10_000
    True
    """
    from candide.report import build
    from candide.report.html.page import is_page

    out = _check_out(out, "report.html")
    check_output(out, model, data, is_own_file=is_page, force=force)
    kwargs = _split_options(options, write_report, "weight", "full", "watch")
    report = build.build_report(_load_to_predict(model), data, target, **kwargs)
    return build.write_report(report, model, out, data, force=force)


def plot_model(
    model: ModelLike,
    data: Any = None,
    out: Path | None = None,
    what: str = "densities",
    *,
    force: bool = False,
    **options: Any,
) -> "PlotSummary":
    """Draw a model, or how well it does on labelled ``data``, into ``out``, a .png, .svg or .pdf file.

    Options: ``features``, ``classes``, ``shape``, ``kind``, ``bins``, ``normalise``, ``dpi``; see :mod:`candide.plot`.

    >>> import os, tempfile, candide as cd
    >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [9.0]], ["a", "a", "b"])
    >>> cd.plot_model(model, out=os.path.join(tempfile.mkdtemp(), "size.png")).plot_name
    'densities'
    """
    from candide.engines.base import no_progress
    from candide.plot.picture import PlotRows, PlotSpec, draw_plot, image_format, is_candide_image, write_figure
    from candide.report.summary import summarize_plot

    out = _check_out(out, "model.png")
    image_format(out)  # an unknown format is an error before any work is done
    check_output(out, model, data, is_own_file=is_candide_image, force=force)
    names = [field.name for field in fields(PlotSpec)[1:]]
    kwargs = _split_options(options, plot_model, *names, "target", "watch", "dpi")
    spec = PlotSpec(what, **{name: kwargs[name] for name in names if name in kwargs})
    rows = PlotRows(data, kwargs.get("target"), kwargs["reading"], kwargs.get("watch", no_progress))
    figure, facts = draw_plot(load_fitted(model), spec, None if data is None else rows)
    written = write_figure(figure, out, kwargs.get("dpi", 150), force=force)
    return summarize_plot(str(model), facts, os.fspath(out), written)


def export_model(model: ModelLike, target: str, out: Path | None = None, **options: Any) -> str | bytes:
    """Return a model as a program that scores rows without Candide: "js", "python", "onnx" (bytes) or "sql".

    "sql" is one SELECT in a ``dialect`` for the rows of a ``table``, with the columns to ``keep``.

    >>> import candide as cd
    >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [9.0]], ["a", "a", "b"])
    >>> "export default model;" in cd.export_model(model, "js")
    True
    """
    from candide.export import targets

    targets.find_target(target)  # an unknown target is an error before any work is done
    check_output(out, model, is_own_file=targets.is_exported_file, force=options.get("force", False))
    return targets.export_model(_load_to_predict(model), target, out, **options)


def _change(
    model: ModelLike, data: Any, out: Path | None, options: dict[str, Any], function: Callable
) -> "tuple[Destination, RowsToCount]":
    from candide.store.update import Destination, RowsToCount

    file = {name: options.pop(name) for name in ("force", "wait") if name in options}
    rows = RowsToCount(data, **_split_options(options, function, "target", "weight", "watch"))
    return Destination(model, out, **file), rows


def _check_out(out: Path | None, example: str) -> Path:
    if not isinstance(out, str | os.PathLike):
        problem = "the file to write is not given" if out is None else f"out: expected a path, got {type(out).__name__}"
        raise InputError(problem, value=out, remedy=f"pass it after the data: out={example!r}")
    return out


def _load_to_predict(model: ModelLike) -> "FittedModel":
    """The fitted model, with a warning if it has no rows left."""
    fitted = load_fitted(model)
    if fitted.has_counts and len(fitted.labels) and not fitted.counts.class_weight.any():
        name = model if isinstance(model, str | os.PathLike) else "the model"
        warnings.warn(f"{name} has no rows: it predicts from its priors alone", stacklevel=3)
    return fitted


def _split_options(
    options: Mapping[str, Any], function: Callable | None, *names: str, model: str | None = None
) -> dict[str, Any]:
    """Keywords as arguments: ``names`` as they are, the others in records; ``settings`` if a ``model`` is given."""
    records = [ReadOptions] if model is None else [Settings, ReadOptions]
    weighted_names = () if model is None else _WEIGHTED_NAMES
    known = [*names, *weighted_names, *(field.name for record in records for field in fields(record))]
    for name in options:
        if name not in known:
            parameters = {} if function is None else signature(function).parameters
            named = [p.name for p in parameters.values() if p.default is not p.empty]
            listed = [name for name in dict.fromkeys((*named, *known)) if name not in _INTERNAL_NAMES]
            raise unknown_name_error("option", name, listed)
    given = [{f.name: options[f.name] for f in fields(record) if f.name in options} for record in records]
    arguments = {name: options[name] for name in names if name in options}
    if model is not None:
        arguments["settings"] = default_settings(model).with_settings(**given[0])
    if weighted := {name: options[name] for name in weighted_names if name in options}:
        if model == "naive":
            name, value = next(iter(weighted.items()))
            remedy = f"leave {name} out, or fit a weighted model: model='bayes'"
            raise InputError(f"{name}={value!r} applies to weighted models only", value=value, remedy=remedy)
        arguments["weighted"] = WeightedSettings(**weighted)
    return {**arguments, "reading": ReadOptions(**given[-1])}


def _save_model(
    fitted: "FittedModel", out: Path | None, force: bool, data: Any = None, typed: Sequence[str] | None = None
) -> None:
    if out is not None:
        from candide import store
        from candide.store.file import make_provenance

        origin = {} if typed is None else make_provenance(str(data), fitted.counts.n_rows, typed)
        store.save(fitted, out, provenance=origin, force=force)
