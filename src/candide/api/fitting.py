"""Fit models: from data, from counts, from a file; check and cross-validate."""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from candide.api.models import Path, _save_model, _split_options
from candide.engines.reading import ReadOptions
from candide.errors import CandideError, InputError, ModelFileError
from candide.files import check_output
from candide.model.settings import DEFAULT_MODEL
from candide.store.container import is_model_file

if TYPE_CHECKING:
    from candide.estimators.base import Classifier
    from candide.model.fitted import FittedModel
    from candide.monitoring.data_checks import CheckResult
    from candide.validation.cross_validation import SettingsComparison, Validation
    from candide.validation.held_out import FitResult

_PLAN_OPTIONS = ("events", "drop", "weight")  # how columns are counted


class ModelFit(NamedTuple):
    """A fit, with its notes and held-out scores, and its cross-validation, where there is one."""

    fit_result: "FitResult"
    validation: "Validation | None" = None


def fit(
    data: Any,
    target: str,
    *,
    model: str = DEFAULT_MODEL,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    calibration: str | None = None,
    like: Any = None,
    **options: Any,
) -> Any:
    """Fit a model to any source, in memory that does not grow with the rows, and return the estimator.

    Parameters
    ----------
    data, target : the source, and the column to predict
    model : "bayes" for :class:`BayesClassifier`, in two passes, or "naive" for :class:`NaiveBayes`, in one
    events : event models by column; columns that are not named are inferred
    drop : columns to leave out
    weight : the column of row weights
    calibration : calibrate the probabilities of a BayesClassifier on held-out rows, "logistic" or "isotonic"
    like : a model, or the path of one: count the columns as it does, so that both models can be added
    options : fields of ``Settings`` and ``ReadOptions``; ``terms``, ``sample_rows`` and ``random_state`` of a
        BayesClassifier

    Examples
    --------
    >>> import candide as cd
    >>> rows = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None], "buys": ["no", "no", "yes", "yes"]}
    >>> cd.fit(rows, target="buys").predict({"age": [30], "job": ["cook"]}).tolist()
    ['no']
    """
    from candide import fit_source
    from candide.data.notes import issue_warnings

    model = fit_source.resolve_model_kind(like, model)
    plan: dict[str, Any] = {"model": model, "events": events, "drop": drop, "weight": weight}
    records = _split_options(options, fit, model=model)
    result = fit_source.fit_model(data, target, calibration=calibration, like=like, **plan, **records)
    issue_warnings(result.notes)
    return _build_estimator(result.fitted)


def fit_model(
    data: Any,
    target: str,
    out: Path | None = None,
    *,
    model: str = DEFAULT_MODEL,
    calibration: str | None = None,
    like: Any = None,
    policy: Any = None,
    folds: int | None = None,
    fold_by: str | None = None,
    keep_held_out: bool = False,
    provenance: Sequence[str] | None = None,
    force: bool = False,
    **options: Any,
) -> ModelFit:
    """Fit a model as :func:`fit` does, and return it with notes, held-out scores and, by ``folds``, a cross-validation.

    ``policy`` becomes part of the model, and so does the threshold that ``at_precision`` or ``at_recall`` selects by
    folds. ``provenance``: options as typed, stored in ``out`` with the source and the date; None stores nothing.

    >>> import candide as cd
    >>> rows = {"size": [1.0, 1.2, 3.1, 2.9], "herb": ["sage", "sage", "thyme", "thyme"]}
    >>> cd.fit_model(rows, "herb", model="naive").fit_result.fitted.counts.n_rows
    4
    """
    from candide import fit_source

    check_output(out, data, like, is_own_file=is_model_file, force=force)
    model = fit_source.resolve_model_kind(like, model)
    if folds is None and options.keys().isdisjoint(("at_precision", "at_recall")):
        if fold_by is not None:
            raise InputError("--fold-by divides rows into folds", value=fold_by, remedy="pass --folds N with it")
        kwargs = _split_options(options, fit_model, *_PLAN_OPTIONS, "watch", model=model)
        how: dict[str, Any] = {"calibration": calibration, "keep_held_out": keep_held_out, "like": like}
        result = fit_source.fit_model(data, target, model=model, **how, **kwargs)
        outcome = ModelFit(replace(result, fitted=result.fitted.with_policy(policy)))
    else:
        _refuse_fit_options({"like": like, "calibration": calibration})
        how = {"model": model, "folds": folds or 10, "fold_by": fold_by, "policy": policy}
        validation = cross_validate(data, target, warn=False, **how, **options)
        result, choice = validation.fit_result, validation.threshold
        if choice is not None:
            from candide.data.notes import Note
            from candide.report.summary.scores import describe_chosen_threshold

            note = Note("threshold-chosen", describe_chosen_threshold(choice.expected_metrics))
            result = replace(result, fitted=result.fitted.with_policy(choice.policy), notes=[*result.notes, note])
        outcome = ModelFit(result, validation)
    _save_model(outcome.fit_result.fitted, out, force, data, provenance)
    return outcome


def _refuse_fit_options(options: Mapping[str, Any]) -> None:
    """Raise an error for options of a fit that a cross-validation does not take."""
    if (like := options.get("like")) is not None:
        what = "folds have bins and terms of their own, and not those of like (--like)"
        raise InputError(what, value=like, remedy="leave like out, or fit without folds")
    if calibration := options.get("calibration"):
        remedy = "fit without folds: the held-out figures are those of the calibrated model"
        raise InputError("a cross-validated model is not calibrated", value=calibration, remedy=remedy)


def fit_from_counts(
    counts: Path | Iterable[str],
    out: Path | None = None,
    *,
    target: str | None = None,
    policy: Any = None,
    provenance: Sequence[str] | None = None,
    force: bool = False,
    **options: Any,
) -> "FitResult":
    """Fit naive Bayes to the result of a query of :func:`make_counting_query`: a CSV file, or its lines.

    >>> import os, tempfile, duckdb, pyarrow as pa, candide as cd
    >>> rows = {"size": [1.0, 1.2, 3.1, 2.9] * 5, "herb": ["sage", "sage", "thyme", "thyme"] * 5}
    >>> plants, path = pa.table(rows), os.path.join(tempfile.mkdtemp(), "counts.csv")
    >>> query = cd.make_counting_query(rows, "herb", table="plants", dialect="duckdb")
    >>> duckdb.sql(query).write_csv(path)
    >>> cd.fit_from_counts(path).fitted.counts.n_rows
    20
    """
    from candide.monitoring.data_checks import check_counts, shorten_notes
    from candide.store.offline_counts import NAIVE_NOTE, read_counts
    from candide.validation.held_out import FitResult

    check_output(out, counts, is_own_file=is_model_file, force=force)
    fitted, notes = read_counts(counts, target, **_split_options(options, fit_from_counts, model="naive"))
    notes = [*notes, *shorten_notes(list(check_counts(fitted.counts))), NAIVE_NOTE]
    fitted = fitted.with_policy(policy)
    _save_model(fitted, out, force, counts, provenance)
    return FitResult(fitted, [], notes)


def make_counting_query(
    data: Any, target: str, out: Path | None = None, *, table: str, dialect: str, force: bool = False, **options: Any
) -> str:
    """Return a query that counts a table in a database that Candide cannot reach; :func:`fit_from_counts` reads on.

    ``data`` is a sample of the table, from which the plan of its columns is made; ``table`` is a name as after FROM, or
    a query. ``events``, ``drop``, ``weight`` and ``like`` are those of :func:`fit`.

    >>> import candide as cd
    >>> rows = {"size": [1.0, 1.2, 3.1, 2.9] * 5, "herb": ["sage", "sage", "thyme", "thyme"] * 5}
    >>> query = cd.make_counting_query(rows, "herb", table="plants", dialect="postgres")
    >>> "GROUP BY" in query, "plants" in query
    (True, True)
    """
    from candide import files
    from candide.store import offline_counts

    check_output(out, data, options.get("like"), is_own_file=offline_counts.is_counting_query, force=force)
    kwargs = _split_options(options, make_counting_query, *_PLAN_OPTIONS, "like")
    query = offline_counts.make_counting_query(data, target, table=table, dialect=dialect, **kwargs)
    if out is not None:
        files.write_atomically(out, [f"{query}\n".encode()])
    return query


def load(path: Path) -> "Classifier":
    """Load a model file: the estimator that was saved, with its parameters.

    >>> import tempfile, candide as cd
    >>> path = os.path.join(tempfile.mkdtemp(), "m.candide")
    >>> cd.NaiveBayes().fit([[1.0], [2.0], [9.0]], ["a", "a", "b"]).save(path)
    >>> cd.load(path).predict([[8.0]]).tolist()
    ['b']
    """
    from candide import store

    return _build_estimator(store.load(path), os.fspath(path))


def check_data(data: Any, target: str, **options: Any) -> "CheckResult":
    """Check a table before a fit: leaks, copies, codes for missing values, identifiers, constants, rare classes.

    Each finding has a ``code``, the ``column``, and a ``remedy``. ``events``, ``drop``, ``weight`` are those of
    :func:`fit`.

    >>> import candide as cd
    >>> rows = {"id": range(40), "copy": ["a", "b"] * 20, "label": ["a", "b"] * 20}
    >>> [(finding.code, finding.column) for finding in cd.check_data(rows, "label").findings]
    [('leak', 'copy')]
    """
    from candide.monitoring import data_checks

    return data_checks.check_data(data, target, **_split_options(options, check_data, *_PLAN_OPTIONS, "watch"))


def cross_validate(
    data: Any,
    target: str,
    *,
    model: str = DEFAULT_MODEL,
    folds: int = 10,
    seed: int = 0,
    fold_by: str | None = None,
    policy: Any = None,
    at_precision: float | None = None,
    at_recall: float | None = None,
    warn: bool = True,
    **options: Any,
) -> "Validation":
    """Cross-validate without refitting: count the folds in one pass over a source, score them in another.

    The training counts of a fold are the sum of the others, and levels that only the fold has are unknown to its model,
    so the scores equal those of refitting. Bins, terms and weights of a BayesClassifier come from the other folds too;
    the grids of numbers, which do not depend on labels, are learned once.

    With ``fold_by``, a column, rows of equal value are in the same fold, and the column is not a feature.
    ``at_precision`` or ``at_recall`` selects the threshold of the model of all rows, ``Validation.threshold``. Other
    options are those of :func:`fit`, except ``calibration`` and ``like``. ``warn=False`` leaves notes to
    ``Validation.fit_result.notes``.

    >>> rows = {"size": [float(i % 10) for i in range(200)], "kind": ["a" if i % 10 < 5 else "b" for i in range(200)]}
    >>> cross_validate(rows, "kind", model="naive", estimate="mle").total.accuracy
    1.0
    """
    from candide.data.notes import issue_warnings
    from candide.decisions.thresholds import select_threshold
    from candide.validation import cross_validation

    _refuse_fit_options(options)
    kwargs = _split_options(options, cross_validate, *_PLAN_OPTIONS, "ignored", "watch", model=model)
    how: dict[str, Any] = {"model": model, "folds": folds, "seed": seed, "fold_by": fold_by, "policy": policy}
    validation = cross_validation.cross_validate(data, target, **how, **kwargs)
    if at_precision is not None or at_recall is not None:
        positive, labels = getattr(policy, "positive", None), validation.fit_result.fitted.labels
        aim = {"positive": positive, "precision": at_precision, "recall": at_recall}
        validation = replace(validation, threshold=select_threshold(validation.folds, labels, **aim))
    if warn:
        issue_warnings(validation.fit_result.notes)
    return validation


def compare_settings(
    data: Any, target: str, settings: Mapping[str, Mapping[str, Any]], *, folds: int = 10, seed: int = 0, **options: Any
) -> "SettingsComparison":
    """Cross-validate several settings on the same folds, and test which differences exceed chance.

    ``settings`` has, by name, options of :func:`fit`: ``model``, ``events``, ``drop`` and fields of ``Settings``. The
    others are compared with the first. ``fold_by`` is that of :func:`cross_validate`.

    >>> from candide.demo import garden_rows
    >>> plants, herb = garden_rows(300, seed=0)
    >>> table = {**plants, "herb": herb}
    >>> naive = {"all": {"model": "naive"}, "one": {"model": "naive", "select": 1}}
    >>> comparison = compare_settings(table, "herb", naive, folds=5)
    >>> [(d.metric, round(d.mean, 2), d.is_significant) for d in comparison.differences if d.metric == "accuracy"]
    [('accuracy', -0.11, True)]
    """
    from candide.validation import cross_validation

    variants = dict[str, dict[str, Any]]()
    for name, keywords in settings.items():
        model = keywords.get("model", DEFAULT_MODEL)
        rest = {key: value for key, value in keywords.items() if key != "model"}
        _refuse_fit_options(rest)
        variants[name] = {"model": model, **_split_options(rest, None, "model", "events", "drop", model=model)}
        if variants[name].pop("reading") != ReadOptions():
            problem = f"{name}: settings that are compared read the data alike"
            raise InputError(problem, value=name, remedy="pass options of reading, such as na, for all settings")
    kwargs = _split_options(options, compare_settings, "fold_by", "weight", "watch")
    return cross_validation.compare_settings(data, target, variants, folds=folds, seed=seed, **kwargs)


def _build_estimator(fitted: "FittedModel", name: str = "this model") -> "Classifier":
    """The estimator that a model was fitted by; a NaiveBayes if it has no record of one."""
    record = fitted.estimator
    if record is None:
        from candide.estimators.naive_bayes import NaiveBayes

        return NaiveBayes.from_fitted(fitted)
    cls: Any = getattr(import_module("candide"), record.name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # issued when it was fitted
            return cls(**record.params)._adopt_fitted(fitted)
    except (CandideError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{name}: invalid parameters of {record.name}: {error}") from None
