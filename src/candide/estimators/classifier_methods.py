"""Methods of a fitted classifier: predictions, densities, exports, explanations, samples."""

import os
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from candide.data import notes
from candide.data.blocks import Block, not_finite_error
from candide.data.table import Table
from candide.engines.table_formats import read_as_fitted
from candide.errors import InputError
from candide.estimators.argument_checks import checked_count, make_generator
from candide.estimators.sklearn_contract import Estimator
from candide.model.fitted import labels_from_codes
from candide.model.input_columns import UnseenValues
from candide.model.model import Model, apply_model
from candide.model.plan import Plan
from candide.model.policy import PolicyLike

if TYPE_CHECKING:
    from candide.explain.columns import FeatureScores
    from candide.explain.decisions import Decision
    from candide.explain.linear import LinearForm, QuadraticForm


class GenerativeClassifier(Estimator):
    """A generative classifier: p(class) and p(x | class).

    >>> import candide as cd
    >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
    >>> model, rows = cd.NaiveBayes().fit(X, y), {"age": [49, 30], "job": ["cook", "cook"]}
    >>> model.predict(rows).tolist(), model.predict_proba(rows).round(2).tolist()
    (['yes', 'no'], [[0.01, 0.99], [0.99, 0.01]])
    >>> model.predict_table(rows).column_names
    ['prediction', 'p_no', 'p_yes', 'log_density']
    >>> joint = model.predict_joint_log_proba(rows)  # log p(x, class); normalised, it is predict_log_proba
    >>> bool(np.allclose(np.logaddexp.reduce(joint, axis=1), model.log_density(rows)))
    True
    >>> [score.column for score in model.feature_scores()], len(model.sample(3, random_state=0)[1])
    (['age', 'job'], 3)
    >>> [node.name for node in model.to_onnx().graph.input]
    ['age', 'job']
    """

    classes_: NDArray
    n_features_in_: int

    def _read(self, X: Any) -> Table:
        """The rows as a table."""
        raise NotImplementedError

    def _match_columns(self, table: Table, plan: Plan) -> Table:
        """The rows, which must have the columns of a plan, with these columns' names."""
        raise NotImplementedError

    def _read_again(self, X: Any, plan: Plan) -> Table:
        """More rows, which must have the columns of a plan, read as those that were counted."""
        return read_as_fitted(self.fitted_, self._match_columns(self._read(X), plan))

    def _read_to_score(self, X: Any, stacklevel: int) -> Table:  # of warnings on the rows
        return self._read_again(X, self.fitted_.plan)

    def _model(self) -> Model:
        return self.fitted_.model

    def _blocks(self, X: Any) -> list[Block]:
        return self.fitted_.plan.blocks(self._read_to_score(X, stacklevel=5))

    def _apply(self, method: Callable, X: Any) -> NDArray:
        plan, blocks = self._checked_fitted.plan, self._blocks(X)
        if blocks[0].shape[0] == 0:
            return method(self._model(), [np.empty((0, 0))] * len(blocks))
        unseen = UnseenValues(plan)
        unseen.observe(blocks)
        notes.issue_warnings(unseen.notes(), stacklevel=3)
        columns = [part.columns for part in plan.parts]
        return apply_model(method, self._model(), columns, blocks, self._value_error_factory(X))

    def _value_error_factory(self, X: Any) -> Callable[[Any, Block], InputError]:
        """A function that makes the error for a value of a block that this classifier does not accept."""
        return not_finite_error

    def predict(self, X: Any) -> NDArray:
        """The class of each row: the most probable one, or that of the policy (``with_policy``); None: abstained."""
        codes = self._apply(self._checked_fitted.classify_function, X)
        return labels_from_codes(self.classes_, codes)

    def with_policy(self, policy: PolicyLike = None, **fields: Any) -> Self:
        """A copy that decides by costs, a threshold or a reject option, or under another class prior.

        ``policy`` is a :class:`candide.Policy`, or its fields are given by name. The copy is saved with it.

        >>> import candide as cd
        >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [8.0], [9.0]], ["low", "low", "top", "top"])
        >>> model.with_policy(costs={("top", "low"): 50}).predict([[4.5], [5.5]]).tolist()
        ['top', 'top']
        >>> model.with_policy(abstain_below=0.99).predict([[1.0], [4.5]]).tolist()
        ['low', None]
        """
        other = copy(self)
        other.fitted_ = self._checked_fitted.with_policy(fields if policy is None else policy)
        return other

    def adapt(self, source: Any, **reading: Any) -> Self:
        """A copy with the class prior re-estimated from the unlabelled rows of any source by EM (Saerens et al. 2002).

        >>> import candide as cd
        >>> model = cd.NaiveBayes().fit({"x": [1.0, 2.0, 3.0, 8.0, 9.0, 10.0]}, ["low"] * 3 + ["top"] * 3)
        >>> model.adapt({"x": [1.0, 2.0, 3.0, 9.0] * 25}).fitted_.policy.class_prior["low"] > 0.7
        True
        """
        from candide.decisions.prior_shift import adapt_prior
        from candide.engines.reading import ReadOptions

        other = copy(self)
        other.fitted_ = adapt_prior(self._checked_fitted, source, reading=ReadOptions(**reading)).fitted
        return other

    def predict_proba(self, X: Any) -> NDArray:
        """p(class | x), (rows, classes), in the order of ``classes_``."""
        return self._apply(Model.posterior, X)

    def predict_interval(self, X: Any, level: float = 0.95, *, draws: int = 200, random_state: int = 0) -> NDArray:
        """Credible intervals of p(class | x), (rows, classes, 2), from draws of the parameters' posterior.

        Parameters are drawn under the priors of the prediction; without a prior (MLE), under Jeffreys'. The intervals
        hold under the model's own assumptions. A weighted model has no such posterior: an error.

        >>> import candide as cd
        >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [3.0], [6.0], [8.0], [9.0]], ["low"] * 3 + ["top"] * 3)
        >>> (low, high), p = model.predict_interval([[4.2]])[0, 1], model.predict_proba([[4.2]])[0, 1]
        >>> bool(low < p < high)
        True
        """
        from candide.model import posterior_draws as drawing

        fitted = self._checked_fitted
        drawing.check_level(level)
        models = drawing.draw_models(fitted, checked_count("draws", draws), random_state)
        return self._apply(lambda model, blocks: drawing.probability_intervals(model, models, blocks, level), X)

    def predict_log_proba(self, X: Any) -> NDArray:
        """log p(class | x), (rows, classes)."""
        return self._apply(Model.log_posterior, X)

    def predict_joint_log_proba(self, X: Any) -> NDArray:
        """log p(x, class), (rows, classes): the score before normalisation."""
        return self._apply(Model.joint_log_likelihood, X)

    def log_density(self, X: Any) -> NDArray:
        """log p(x), (rows,): low for rows unlike the training rows. Complement has no density: an error."""
        if any(not part.event.has_density for part in self._checked_fitted.plan.parts):
            what = f"{type(self).__name__} has no density: the scores of complement are not log-probabilities"
            raise InputError(what, remedy="use multinomial")
        return self._apply(Model.log_density, X)

    def predict_table(
        self,
        source: Any,
        out: str | os.PathLike | None = None,
        *,
        keep: Sequence[str] = (),
        force: bool = False,
        policy: PolicyLike = None,
        intervals: float | None = None,
        **reading: Any,
    ) -> Any:
        """Score any source in batches into a file (returns the number of rows) or an Arrow table.

        The columns are those of ``keep``, then ``prediction``, ``p_<class>`` for every class, and ``log_density``,
        which is empty for weighted models: a weighted score is not a density. ``policy`` decides, where given;
        ``intervals=0.95`` adds ``p_<class>_low`` and ``p_<class>_high``. A file that is read is never overwritten, and
        one that does not hold predictions only with ``force``.
        """
        from candide.engines import predictions  # here, because arrays need no database
        from candide.engines.reading import ReadOptions

        how: dict[str, Any] = {"out": out, "keep": keep, "force": force, "policy": policy, "intervals": intervals}
        return predictions.predict_table(self._checked_fitted, source, reading=ReadOptions(**reading), **how)

    def export(
        self, to: str, out: str | os.PathLike | None = None, *, force: bool = False, **options: Any
    ) -> "str | bytes":
        """The model as a file that scores rows without Candide: ``to`` is "js", "python", "onnx" or "sql".

        Returns its text (of ONNX its bytes), and writes it into ``out`` where given; a file that is not an export is
        overwritten only with ``force``. Its probabilities are those of ``predict_proba``. Options of "sql" are
        ``dialect``, ``table`` and ``keep``, as in :meth:`to_sql`.

        >>> import candide as cd
        >>> scorer = {}
        >>> exec(cd.NaiveBayes().fit([[1.0], [2.0], [9.0]], ["low", "low", "top"]).export("python"), scorer)
        >>> scorer["score"]({0: 8.5})["label"]
        'top'
        """
        from candide.export.targets import export_model

        return export_model(self._checked_fitted, to, out, force=force, **options)

    def to_onnx(self) -> Any:
        """The model as an ``onnx.ModelProto`` with one input a column; its bytes are ``export("onnx")``."""
        from candide.export.onnx import build_onnx_model

        return build_onnx_model(self._checked_fitted)

    def to_sql(self, dialect: str, table: str, *, keep: Sequence[str] = ()) -> str:
        """The model as one SELECT that returns the label and the probabilities of every row of a table.

        ``dialect`` is "duckdb", "postgres", "spark", "sqlite", "snowflake", "bigquery", "clickhouse", "mysql",
        "trino" or "tsql"; ``keep`` names columns of the table to pass through, such as a key.

        >>> import candide as cd, duckdb
        >>> rows = duckdb.sql("SELECT i AS id, i * 4.5 AS size FROM range(2) r(i)")
        >>> query = cd.NaiveBayes().fit({"size": [0.0, 1.0, 4.0]}, ["low", "low", "top"]).to_sql("duckdb", "rows")
        >>> duckdb.sql(query).project("prediction").fetchall()
        [('low',), ('top',)]
        """
        return str(self.export("sql", dialect=dialect, table=table, keep=keep))

    # Explaining.

    def linear(self) -> "LinearForm":
        """The classifier as weights and an intercept, where its score is linear: it predicts by ``w . x + b > 0``.

        Gaussian columns need a variance shared by the classes; other columns any estimate except "predictive" (which
        is allowed for categories). Where the score is not linear an error names the reason and the remedy.

        >>> import candide as cd
        >>> shared = cd.events.Gaussian(covariance="tied-diagonal")  # means 1 and 5, variance 1
        >>> model = cd.NaiveBayes(shared, estimate="mle").fit([[0.0], [2.0], [4.0], [6.0]], ["a", "a", "b", "b"])
        >>> form = model.linear()
        >>> form.coef.round(6).tolist(), form.intercept.round(6).tolist()
        ([[4.0]], [-12.0])
        """
        from candide.explain.linear import build_linear_form

        fitted = self._checked_fitted
        return build_linear_form(self._model(), fitted.plan.parts, fitted.labels, self._blocks)

    def quadratic(self) -> "QuadraticForm":
        """The classifier as squares, weights and an intercept: Gaussian columns may have a variance in each class.

        >>> import candide as cd
        >>> model = cd.NaiveBayes("gaussian", estimate="mle").fit([[0.0], [2.0], [3.0], [7.0]], ["a", "a", "b", "b"])
        >>> model.quadratic().quadratic_coef.round(6).tolist()  # (1/1 - 1/4) / 2, of variances 1 and 4
        [[0.375]]
        """
        from candide.explain.linear import build_quadratic_form

        fitted = self._checked_fitted
        return build_quadratic_form(self._model(), fitted.plan.parts, fitted.labels, self._blocks)

    def feature_scores(self) -> "FeatureScores":
        """The association of each column with the class, strongest first: evidence, information and a test."""
        from candide.explain.columns import score_model_features

        return score_model_features(self._checked_fitted)

    def explain(self, X: Any, by: str = "term") -> "list[Decision]":
        """Why each row has its class: contributions to its log-odds against the runner-up, strongest first.

        Columns that are modelled together are one term; ``by="column"`` divides its contribution among them.

        >>> import candide as cd
        >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
        >>> [decision] = cd.NaiveBayes().fit(X, y).explain({"age": [49], "job": ["cook"]})
        >>> print(decision)
        yes, p = 0.988, against no, p = 0.012
        column       value  log-odds
        age             49     +4.81
        job           cook     -0.39
        class prior            +0.00
        """
        from candide.explain.rows import explain_table

        fitted = self._checked_fitted
        return explain_table(fitted, self._read_to_score(X, stacklevel=3), by=by)

    def report(
        self,
        data: Any = None,
        out: str | os.PathLike | None = None,
        *,
        target: str | None = None,
        weight: str | None = None,
        full: bool = False,
        force: bool = False,
        **reading: Any,
    ) -> Any:
        """An HTML report in one file (returns its size in bytes), or as text that notebooks display.

        It shows the terms by importance and, for ``data`` with labels in the column ``target``, performance, the
        largest errors and data warnings. Parts that cannot be made are left out with a note. ``full`` includes every
        term, however large the page. A file that is not a report is overwritten only with ``force``.

        >>> import candide as cd
        >>> cd.NaiveBayes().fit([[1.0], [2.0], [9.0]], ["a", "a", "b"]).report()  # doctest: +ELLIPSIS
        <report of ... kB in HTML: report(..., out='report.html') writes it to a file>
        """
        from candide.engines.reading import ReadOptions  # here, because arrays need no database
        from candide.files import check_output
        from candide.report.build import build_report, write_report
        from candide.report.html.page import PageText, is_page

        fitted, options = self._checked_fitted, ReadOptions(**reading)
        check_output(out, data, is_own_file=is_page, force=force)
        report = build_report(fitted, data, target, weight=weight, full=full, reading=options)
        if out is None:
            return PageText(report.text)
        return write_report(report, None, out, data, force=force).size_bytes

    def _html_summary(self) -> str:
        from candide.report.summary.models import render_model_html

        return render_model_html(repr(self), self.fitted_)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray]:
        """Rows and labels drawn from the model: an array if it was fitted to one, else columns, dates as dates."""
        fitted, n_samples, columns = self._checked_fitted, checked_count("n_samples", n_samples), {}
        blocks, y = self._model().sample(n_samples, make_generator(random_state))
        for part, block in zip(fitted.plan.parts, blocks, strict=True):
            for j, name in enumerate(part.columns):
                columns[name] = fitted.in_types(name, part.encodings[j].decode(block[:, j]))
        if all(isinstance(name, int) for name in fitted.plan.columns):
            absent = np.full(n_samples, np.nan)  # columns that were not selected
            return np.column_stack([columns.get(j, absent) for j in range(self.n_features_in_)]), self.classes_[y]
        return {name: columns[name] for name in fitted.plan.columns}, self.classes_[y]
