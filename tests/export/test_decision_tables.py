"""Decision tables in every export: rows with missing and unseen values, and numbers at and beyond the edges."""

import numpy as np
import pytest
from tests.engines.spark_session import needs_spark, session
from tests.export import databases, scorers

import candide as cd
from candide import export
from candide.data.blocks import ArrayValue
from candide.data.labels import Labels
from candide.data.table import Table
from candide.encoding import Grid, LevelEncoding
from candide.engines.sql.dialects.registry import DIALECTS
from candide.errors import InputError
from candide.export.parameters import export_parameters
from candide.export.sql import operations as sql
from candide.export.sql.query import write_select
from candide.model.fitted import FittedModel, Parameters
from candide.model.model import Model
from candide.model.plan import Plan, PlanPart
from candide.weighted.terms.decision_tables import DecisionTables

EDGES = {"age": (-3.0, 0.5, 7.0), "size": tuple(np.linspace(0.0, 1e6, 126).tolist())}
JOBS = ["cook", "smith", "it's", "naïve 🙂", "clerk", "none"]
N_TABLES = 11  # of each chain: two segments


class Scored:
    """A model of arrays and of the tables, with the methods of an estimator."""

    def __init__(self, fitted):
        self.fitted_ = fitted

    def predict_proba(self, rows):
        return self.fitted_.posterior(rows)

    def predict(self, rows):
        return self.fitted_.labels.array[self.predict_proba(rows).argmax(axis=1)]


def random_tables(rng, sizes, k, n_chains=2):
    """An event with tables of eight questions, of fewer, and of none; some cells had no rows."""
    n = n_chains * N_TABLES
    columns = rng.integers(0, len(sizes), (n, 8)).astype(np.int32)
    for t, n_questions in ((1, 3), (5, 0), (n - 1, 7)):
        columns[t, n_questions:] = -1
    sides = rng.integers(0, 2, (n, 8, 256)).astype(np.uint8)
    rows = (rng.integers(0, 3, (n, 256)) * 2.5).astype(np.float32)
    for t, own in enumerate(columns):
        rows[t, 1 << (own >= 0).sum() :] = 0.0
    values = rng.normal(0.0, 0.5, (int((rows > 0).sum()), k)).astype(np.float32)
    packed = np.packbits(sides.reshape(n * 8, 256), axis=1)
    names = ("columns", "sides", "cell_rows", "values")
    arrays = {name: ArrayValue(array) for name, array in zip(names, (columns, packed, rows, values), strict=True)}
    return DecisionTables(N_TABLES, tuple(range(k)), tuple(range(len(sizes))), **arrays)


def build_model(k, weight=(0.7, 1.3), seed=0):
    """The levels of a column are in one part all known, and in the tables those that are common."""
    rng = np.random.default_rng(seed)
    jobs = rng.choice(JOBS, 300).astype(object)
    labels = np.array(["a", "b", "c"])[:k]
    by_job = cd.NaiveBayes("categorical").fit({"job": jobs, "zip": rng.integers(0, 9, 300)}, rng.choice(labels, 300))
    common = LevelEncoding(Labels(("clerk", "cook", "rare")), fixed=True)
    zips = LevelEncoding(Labels((1, 3)), fixed=True)
    encodings = {"age": Grid(EDGES["age"]), "job": common, "zip": zips, "size": Grid(EDGES["size"])}
    sizes = [encoding.n_levels for encoding in encodings.values()]
    event = random_tables(rng, sizes, k)
    part = PlanPart(event, tuple(encodings), tuple(encodings.values()))
    fitted = by_job.fitted_
    plan = Plan((*fitted.plan.columns, "age", "size"), (*fitted.plan.parts, part))
    tables = event.distribution(sizes).with_feature_weights(np.array(weight))
    model = Model(fitted.model.log_prior, (*fitted.model.distributions, tables))
    return Scored(FittedModel(None, parameters=Parameters(plan, fitted.labels, model)))


def draw_rows(n=400, seed=1):
    rng = np.random.default_rng(seed)
    jobs = rng.choice(np.array([*JOBS, "rare", "unseen", None], object), n)
    numbers = {}
    for name, edges in EDGES.items():
        near = np.array([x for edge in edges for x in (edge, np.nextafter(edge, -np.inf), np.nextafter(edge, np.inf))])
        numbers[name] = rng.choice([*near, -1e300, 1e300, np.nan, 0.0], n)
    zips = rng.choice([0.0, 1.0, 2.0, 3.0, 1.5, 77.0, np.nan], n)
    return {"job": jobs, "zip": zips, **numbers}


CASES = {"two classes": (2, (0.7, 1.3)), "three classes": (3, (0.7, 1.3)), "a segment without weight": (2, (0.0, 0.4))}


@pytest.fixture(params=CASES)
def model(request):
    return build_model(*CASES[request.param])


@pytest.mark.parametrize("name", scorers.SCORERS)
def test_modules(model, name, tmp_path):
    rows = draw_rows()
    said = scorers.SCORERS[name](model.fitted_, scorers.rows_of(rows, model.fitted_.plan.columns), tmp_path)
    scorers.check(said, model, rows)


def test_onnx(model):
    pytest.importorskip("onnxruntime")
    from tests.export.test_onnx import ReferenceEvaluator, build_onnx_model, inputs, run

    rows = draw_rows()
    plain = scorers.rows_of(rows, model.fitted_.plan.columns)
    labels, found = run(model, plain)
    assert found == pytest.approx(model.predict_proba(rows), abs=1e-9)
    assert labels.tolist() == model.predict(rows).tolist()
    graph = build_onnx_model(model.fitted_)
    _, found = ReferenceEvaluator(graph).run(["label", "probabilities"], inputs(graph, plain))
    assert found == pytest.approx(model.predict_proba(rows), abs=1e-9)


def check_sql(score, model, n=400):
    rows = draw_rows(n)
    databases.check(score(model.fitted_, databases.arrow(rows, model.fitted_.plan.columns)), model, rows)


@pytest.mark.parametrize("name", databases.DATABASES)
def test_sql(model, name):
    check_sql(databases.DATABASES[name], model)


def test_postgres(model, postgres):
    check_sql(databases.by_postgres(postgres), model)


@needs_spark
def test_spark(tmp_path):
    with session() as spark:
        for case in CASES.values():
            check_sql(databases.by_spark(spark, tmp_path), build_model(*case), 100)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_can_be_parsed(model, dialect):
    import sqlglot

    assert len(sqlglot.parse(write_select(model.fitted_, dialect=dialect, table="t"), dialect=dialect)) == 1


def test_too_many_numbers_for_a_query_are_refused(model, monkeypatch):
    monkeypatch.setattr(sql, "MAX_CELL_SCORES", 100)
    with pytest.raises(InputError) as caught:
        write_select(model.fitted_, dialect="duckdb", table="t")
    assert "python" in caught.value.remedy


def test_contributions_are_those_of_the_segments(model):
    """Not only their differences between classes, which alone change the probabilities."""
    from candide.export.python_js.model import load

    rows = draw_rows(30)
    found = load(export_parameters(model.fitted_))
    part, base = model.fitted_.plan.parts[-1], model.fitted_.model.distributions[-1]
    expected = base.contributions(part.block(Table.from_data(rows)))  # (row, class, segment)
    names = [str(title) for title in part.event.term_titles(part.columns)]
    for i, row in enumerate(scorers.rows_of(rows, model.fitted_.plan.columns)):
        terms = {term["name"]: term["contributions"] for term in found.score(row)["terms"]}
        assert [terms[name] for name in names] == pytest.approx(expected[i].T, abs=1e-12)


def test_a_fitted_model_with_tables(tmp_path):
    """Rules of several columns, which tables follow and pairs do not."""
    rng = np.random.default_rng(5)
    X = {name: rng.normal(size=1500) for name in "abcd"} | {"job": rng.choice(JOBS, 1500).astype(object)}
    rule = (X["a"] > 0) ^ (X["b"] > 0) ^ (X["c"] > 0)
    model = cd.BayesClassifier(terms="tables").fit(X, np.where(rng.random(1500) < 0.9, rule, ~rule).astype(int))
    assert any(part.event.name == "decision_tables" for part in model.fitted_.plan.parts)
    rows = {name: column[:200] for name, column in X.items()}
    said = scorers.SCORERS["python"](model.fitted_, scorers.rows_of(rows, rows), tmp_path)
    scorers.check(said, model, rows)
    databases.check(databases.by_duckdb(model.fitted_, databases.arrow(rows, rows)), model, rows)
    assert len(export.to_python(model.fitted_)) < 2_000_000
