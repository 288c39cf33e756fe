"""Cross-validation without refitting equals refitting on every fold."""

import json
import warnings
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, log_loss, roc_auc_score
from tests.tables import table

import candide as cd
from candide.cli import cli
from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Table
from candide.demo import garden_rows
from candide.engines import arrays
from candide.engines.base import Folds, LabelledSource, open_source
from candide.engines.counting import prepare_source
from candide.engines.draw_sample import draw_sample
from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.estimators.naive_bayes import NaiveBayes
from candide.fit_source import fit_model
from candide.metrics.scores import Scores, fold_statistics
from candide.model.model import Model
from candide.model.settings import Settings, WeightedSettings
from candide.validation import cross_validation
from candide.validation.cross_validation import compare_settings, paired_interval
from candide.validation.evaluation import evaluate
from candide.weighted.fit import fit_weighted
from candide.weighted.selection import LearnedEncodings, select_terms

cross_validate, learn = (partial(task, model="naive") for task in (cross_validation.cross_validate, fit_model))
SETTINGS = Settings(class_prior="jeffreys")


def made(n=600, seed=0) -> pa.Table:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    size = y * 1.5 + rng.normal(0, 1.5, n)
    colour = np.where(rng.random(n) < 0.6, y, rng.integers(0, 4, n))
    return pa.table({"size": pa.array(size, mask=rng.random(n) < 0.1), "colour": [f"c{v}" for v in colour], "y": y})


def folds_of(data: pa.Table, folds: int, seed: int, target: str = "y") -> np.ndarray:
    with open_source(data) as source:
        batches = source.batches([next(iter(source.columns))], 1 << 17, Folds(folds, seed, target))
        return np.concatenate([batch.column(1).to_numpy() for batch in batches])


@pytest.mark.parametrize("seed", [0, 5])
def test_equals_refitting_on_every_fold(seed):
    data = made()
    validation = cross_validate(data, "y", folds=7, seed=seed, model="naive")
    fold, frame = folds_of(data, 7, seed), data.to_pandas()
    for f, scores in enumerate(validation.folds):
        train, test = frame[fold != f], frame[fold == f]
        model = NaiveBayes().fit(train[["size", "colour"]], train["y"])
        refitted = Scores.from_log_posterior(model.predict_log_proba(test[["size", "colour"]]), test["y"].to_numpy())
        for name, value in refitted.metrics().items():
            assert getattr(scores, name) == pytest.approx(value, rel=1e-9, abs=1e-12), name
        np.testing.assert_array_equal(scores.confusion, refitted.confusion)


def refitted_scores(frame, labels, target, model, fold):
    """The scores of each fold by a model that is fitted to the rows of the others."""
    X = frame.drop(columns=target)
    for f in range(fold.max() + 1):
        train, test = fold != f, fold == f
        fitted = model.fit(X[train], frame[target][train])
        n, unmet = train.sum(), len(labels) - len(fitted.classes_)  # an unmet class has the share of one row more
        known = np.full((test.sum(), len(labels)), np.log(1 / (n + unmet)))
        known[:, np.searchsorted(labels, fitted.classes_)] = fitted.predict_log_proba(X[test]) + np.log(n / (n + unmet))
        yield Scores.from_log_posterior(known, np.searchsorted(labels, frame[target][test]))


def assert_same_scores(found, wanted):
    for name, value in wanted.metrics().items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True), name
    np.testing.assert_array_equal(found.confusion, wanted.confusion)


@pytest.mark.parametrize("kind", [pa.Table.from_pandas, Table.from_data], ids=["duckdb", "arrays"])
@pytest.mark.parametrize("class_prior", ["empirical", "uniform"])
def test_the_model_of_a_fold_lacks_what_only_that_fold_has(kind, class_prior):
    rng = np.random.default_rng(0)
    frame = made(90).to_pandas()
    frame["town"] = [f"t{v}" for v in rng.integers(0, 60, 90)]  # many towns lie in one fold only
    frame["words"] = [f"some w{a} and w{b} here" for a, b in rng.integers(0, 80, (90, 2))]
    frame.loc[17, "y"] = 3  # and so does this class
    data, settings = kind(frame), Settings(class_prior=class_prior)
    validation = cross_validate(data, "y", folds=5, events={"words": "text"}, settings=settings, model="naive")
    assert [remark.column for remark in validation.fit_result.notes if remark.code == "class-rare"] == ["y"]
    model = NaiveBayes({"words": "text"}, class_prior=class_prior)
    refitted = refitted_scores(frame, np.arange(4), "y", model, folds_of(data, 5, 0))
    for found, wanted in zip(validation.folds, refitted, strict=True):
        assert_same_scores(found, wanted)


def test_equals_refitting_on_adult():
    """Of 41 countries one has a single row: the model of its fold must not know it."""
    frame = pq.read_table(table("adult_train.parquet")).slice(0, 20000).to_pandas()
    data = pa.Table.from_pandas(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cross_validate(data, "class", folds=4, model="naive")
    labels = np.unique(frame["class"].astype(str))
    refitted = refitted_scores(frame, labels, "class", NaiveBayes(), folds_of(data, 4, 0, "class"))
    for scores, wanted in zip(found.folds, refitted, strict=True):
        assert_same_scores(scores, wanted)


def test_classes_that_the_class_prior_names_stay_known_in_every_fold():
    frame = made(60).to_pandas()
    frame.loc[17, "y"] = 3
    shares = {0: 0.3, 1: 0.3, 2: 0.3, 3: 0.1}
    total = cross_validate(
        pa.Table.from_pandas(frame), "y", folds=5, settings=Settings(class_prior=shares), model="naive"
    ).total
    assert np.isfinite(total.log_loss)


@pytest.mark.parametrize("kind", [pa.table, Table.from_data], ids=["duckdb", "arrays"])
@pytest.mark.parametrize("order", ["any", "by class"])
def test_folds_are_stratified_and_depend_on_the_seed(kind, order):
    rng = np.random.default_rng(0)
    y = np.repeat(["many", "some", "ten", "two", "one"], [700, 290, 10, 2, 1])
    data = kind({"x": np.arange(1003.0), "y": y if order == "by class" else rng.permutation(y)})
    labels = np.asarray(data["y"] if isinstance(data, pa.Table) else data.column("y"))
    first, second = folds_of(data, 10, 0), folds_of(data, 10, 1)
    for part in (labels == label for label in np.unique(y)):
        assert np.ptp(np.bincount(first[part], minlength=10)) <= 1
    assert np.ptp(np.bincount(first, minlength=10)) <= 1
    assert (first != second).mean() > 0.5
    np.testing.assert_array_equal(first, folds_of(data, 10, 0))


def test_folds_do_not_depend_on_threads_or_memory(tmp_path):
    n = 300_000
    rng = np.random.default_rng(0)
    pq.write_table(
        pa.table({"x": rng.random(n), "y": rng.integers(0, 3, n)}), tmp_path / "t.parquet", row_group_size=7000
    )
    found = [
        cross_validate(
            str(tmp_path / "t.parquet"), "y", reading=ReadOptions(threads=t, memory_limit=m), model="naive"
        ).total.confusion
        for t, m in ((1, None), (4, None), (2, "100MB"))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("kind", [pa.table, Table.from_data], ids=["duckdb", "arrays"])
@pytest.mark.parametrize("rare", [1, 2])
def test_a_rare_class_gives_finite_scores_and_a_note(kind, rare):
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"], object)[rng.integers(0, 2, 200)]
    y[[17, 90][:rare]] = "z"
    data = kind(
        {"x": rng.normal(0, 1, 200) + (y == "b"), "k": [f"k{v}" for v in rng.integers(0, 5, 200)], "y": list(y)}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cross_validate(data, "y", folds=10, model="naive")
        assert all(np.isfinite(value) for pair in fold_statistics(found.folds).values() for value in pair)
    assert all(np.isfinite(value) for value in found.total.metrics().values())
    [remark] = [remark for remark in found.fit_result.notes if "class 'z'" in remark.text]  # named once
    assert (remark.code, remark.column) == ("class-rare", "y")
    assert "'a'" not in remark.text


def test_no_note_on_classes_with_enough_rows():
    assert not [
        one
        for one in cross_validate(made(90), "y", folds=5, model="naive").fit_result.notes
        if one.code == "class-rare"
    ]


def test_no_leak_through_the_fold_itself():
    """Labels drawn at random cannot be predicted, even by a column of nearly unique levels."""
    rng = np.random.default_rng(3)
    data = pa.table({"code": [f"k{v}" for v in rng.integers(0, 400, 800)], "y": rng.integers(0, 2, 800)})
    assert 0.42 < cross_validate(data, "y", folds=10, model="naive").total.accuracy < 0.58


@pytest.mark.parametrize("kind", ["query", "relation", "view"])
def test_no_leak_where_a_query_gives_its_rows_in_another_order_each_time(kind, tmp_path):
    """Each level is met once, so that it tells of its row alone, if that row is in a fold it should not be in."""
    con = duckdb.connect(str(tmp_path / "rows.duckdb"))
    con.execute("CREATE TABLE t AS SELECT 'k' || i AS k, hash(i) % 2 AS y FROM range(3000) r(i)")
    con.execute("CREATE VIEW shuffled AS SELECT k, y FROM t ORDER BY random()")
    con.execute(f"COPY t TO '{tmp_path / 'rows.parquet'}'")
    data, reading = f"SELECT k, y FROM '{tmp_path / 'rows.parquet'}' ORDER BY random()", None
    if kind == "relation":
        data = con.sql("SELECT k, y FROM t ORDER BY random()")
    else:
        con.close()
    if kind == "view":
        data, reading = str(tmp_path / "rows.duckdb"), ReadOptions(table="shuffled")
    found = cross_validate(data, "y", events={"k": "categorical"}, folds=5, reading=reading, model="naive").total
    assert found.n == 3000
    assert 0.45 < found.accuracy < 0.55


def test_metrics_equal_scikit_learns():
    data = made(3000, seed=2)
    model = learn(data.slice(0, 2000), "y", model="naive").fitted
    test = data.slice(2000)
    scores = evaluate(model, test)
    frame = test.to_pandas()
    face = NaiveBayes().fit(data.slice(0, 2000).to_pandas()[["size", "colour"]], data.slice(0, 2000)["y"].to_numpy())
    p, y = face.predict_proba(frame[["size", "colour"]]), frame["y"]
    assert scores.accuracy == pytest.approx((p.argmax(1) == y).mean())
    assert scores.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, p.argmax(1)))
    assert scores.log_loss == pytest.approx(log_loss(y, p), rel=1e-9)
    assert scores.brier == pytest.approx(brier_score_loss(y, p), rel=1e-9)
    assert scores.auc == pytest.approx(roc_auc_score(y, p, multi_class="ovr"), abs=1e-5)
    weighted = roc_auc_score(y, p, multi_class="ovr", average="weighted")
    assert scores.weighted_auc == pytest.approx(weighted, abs=1e-12)
    some = np.flatnonzero((y > 0) | (np.arange(len(y)) % 9 == 0))  # classes of other sizes, and one that does not occur
    wider = np.pad(p[some], ((0, 0), (0, 1)), constant_values=1e-9)
    found = Scores.from_log_posterior(np.log(wider / wider.sum(axis=1, keepdims=True)), y.to_numpy()[some])
    wanted = roc_auc_score(y.to_numpy()[some], p[some], multi_class="ovr", average="weighted")
    assert found.weighted_auc == pytest.approx(wanted, abs=1e-6)
    assert abs(found.weighted_auc - found.auc) > 1e-4


def test_binary_metrics_and_calibration_error():
    rng = np.random.default_rng(4)
    p1 = rng.random(5000)
    y = (rng.random(5000) < p1**2).astype(int)
    w = rng.integers(1, 3, 5000).astype(float)
    scores = Scores.from_log_posterior(np.log(np.stack([1 - p1, p1], axis=1)), y, w)
    assert scores.auc == pytest.approx(roc_auc_score(y, p1, sample_weight=w), abs=1e-5)
    assert scores.weighted_auc == pytest.approx(scores.auc, rel=1e-12)
    assert scores.brier == pytest.approx(brier_score_loss(y, p1, sample_weight=w), rel=1e-9)
    top, right = np.maximum(p1, 1 - p1), (p1 > 0.5) == y
    bins = np.minimum((top * 15).astype(int), 14)
    ece = sum(abs((w * (top - right))[bins == b].sum()) for b in range(15)) / w.sum()
    assert scores.calibration_error == pytest.approx(ece)


@pytest.mark.parametrize("folds", [10, 1, 0])
def test_too_few_rows_or_folds(folds):
    with pytest.raises(InputError) as error:
        cross_validate(made(5), "y", folds=folds, model="naive")
    assert error.value.value == folds


def joint_rows(n=300, seed=0, gaps=0.1) -> pa.Table:
    """Columns that tell something only together, missing values, and towns that lie in one fold only."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 3, (2, n))
    y = np.where(rng.random(n) < 0.9, (a + b) % 3, rng.integers(0, 3, n))
    size = y + rng.normal(0, 2, n)
    return pa.table({
        "size": pa.array(size, mask=rng.random(n) < gaps),
        "width": size + rng.normal(0, 1, n),
        "a": pa.array([f"a{v}" for v in a], mask=rng.random(n) < gaps),
        "b": pa.array([f"b{v}" for v in b], mask=rng.random(n) < gaps),
        "town": [f"t{v}" for v in rng.integers(0, n // 3, n)],
        "y": y,
    })  # fmt: skip


def refitted(data: pa.Table, seen, fold: np.ndarray, folds: int):
    """The scores of each fold by a model that is fitted to the rows of the others; ``seen`` are those looked at."""
    y, labels = data["y"].to_numpy(), np.unique(data["y"])
    X = data.drop_columns(["y"])
    every, part = Labels.from_values(y), len(seen) / len(y)
    encodings = LearnedEncodings.from_sample(
        Sample(Table.from_data(X.take(seen)), seen, every.encode(y[seen]), every, fraction=part).pool_rows()
    )
    for f in range(folds):
        train, test, some = np.flatnonzero(fold != f), np.flatnonzero(fold == f), seen[fold[seen] != f]
        table, sample = Table.from_data(X.take(train)), Table.from_data(X.take(some))
        mine, of_sample = Labels.from_values(y[train]), Labels.from_values(y[some])
        pooled = Sample(sample, some, of_sample.encode(y[some]), of_sample, fraction=part).pool_rows()
        plan, found = select_terms(pooled, settings=SETTINGS, encodings=encodings)

        def count(plan, table=table, y=y[train], labels=mine):
            return arrays.count_table(table, y, plan=plan.with_levels(table), labels=labels)

        fitted = fit_weighted(pooled, count, plan=plan, start=found, settings=WeightedSettings(SETTINGS))
        n, unmet = len(train), len(labels) - len(mine)  # an unmet class has the share of one row more
        known = np.full((len(test), len(labels)), np.log(1 / (n + unmet)))
        known[:, np.searchsorted(labels, mine.array)] = fitted.apply(Model.log_posterior, X.take(test)) - np.log1p(
            unmet / n
        )
        yield Scores.from_log_posterior(known, np.searchsorted(labels, y[test])), plan


@pytest.mark.parametrize("kind", [lambda data: data, Table.from_data], ids=["duckdb", "arrays"])
def test_weighted_folds_equal_refitting(kind):
    frame = joint_rows().to_pandas()
    frame.loc[17, ["town", "y"]] = None, 3  # a class that lies in one fold only
    data, n = pa.Table.from_pandas(frame, preserve_index=False), len(frame)
    found = cross_validation.cross_validate(kind(data), "y", folds=3, settings=SETTINGS, model="bayes")
    plans = []
    for scores, (wanted, plan) in zip(
        found.folds, refitted(data, np.arange(n), folds_of(kind(data), 3, 0), 3), strict=True
    ):
        assert_same_scores(scores, wanted)
        plans.append({one for part in plan.parts for one in part.event.term_names(part.columns)})
    assert all(("a", "b") in plan for plan in plans)
    assert (
        found.total.accuracy > cross_validation.cross_validate(data, "y", folds=3, model="naive").total.accuracy + 0.2
    )


def test_counts_are_of_all_rows_and_weights_of_the_sample():
    data = joint_rows(2000, gaps=0.0)
    options = {"settings": SETTINGS, "weighted": WeightedSettings(sample_rows=400)}
    found = cross_validation.cross_validate(data, "y", folds=3, model="bayes", **options)
    with open_source(data) as source:
        source.materialise()
        seen = draw_sample(
            LabelledSource(source, "y", None, Folds(3, 0, "y")), prepare_source(source, "y"), rows=400
        ).row_number
    assert len(seen) == 400
    assert found.fit_result.fitted.term_weights.n_learned_rows == 400
    assert found.fit_result.fitted.counts.n_rows == 2000
    for scores, (wanted, _) in zip(found.folds, refitted(data, seen, folds_of(data, 3, 0), 3), strict=True):
        assert_same_scores(scores, wanted)


def test_the_model_of_all_rows_is_the_one_that_is_fitted():
    data = joint_rows()
    found = cross_validation.cross_validate(data, "y", folds=3, model="bayes").fit_result.fitted
    wanted = fit_model(data, "y", model="bayes").fitted
    assert found.plan.columns == wanted.plan.columns
    rows = data.drop_columns(["y"])
    np.testing.assert_allclose(found.posterior(rows), wanted.posterior(rows), rtol=1e-9, atol=1e-12)


def test_terms_of_a_fold_are_selected_without_its_rows():
    """Many columns of noise on few rows: a pair that is chosen by all rows would tell the folds' own classes."""
    rng = np.random.default_rng(1)
    noise = {f"c{j}": [f"v{v}" for v in rng.integers(0, 4, 120)] for j in range(20)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = rng.integers(0, 2, 120)
        found = cross_validation.cross_validate({**noise, "y": y}, "y", folds=4, model="bayes").total
    assert found.auc < 0.62
    shares = np.bincount(y) / 120
    assert found.log_loss > -shares @ np.log(shares)  # the class prior


PLANTS, HERBS = garden_rows(400, seed=3)
TABLE = {**PLANTS, "herb": HERBS}
TWO = {"naive": {"model": "naive"}, "bayes": {"model": "bayes"}}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path_factory.mktemp("compare") / "herbs.parquet"
    parquet.write_table(pa.table(TABLE), path)
    return str(path)


def test_each_setting_is_cross_validated_as_it_is_alone():
    found = cd.compare_settings(TABLE, "herb", TWO, folds=4, seed=1)
    for name in TWO:
        alone = cd.cross_validate(TABLE, "herb", model=name, folds=4, seed=1)
        assert found.totals[name].metrics() == pytest.approx(alone.total.metrics(), rel=1e-12)
        assert [fold.accuracy for fold in found.validations[name].folds] == [fold.accuracy for fold in alone.folds]


def test_differences_are_those_of_folds():
    found = cd.compare_settings(TABLE, "herb", TWO, folds=4)
    a, b = (np.array([fold.log_loss for fold in found.validations[name].folds]) for name in TWO)
    [one] = [one for one in found.differences if one.metric == "log_loss"]
    assert one.mean == pytest.approx((b - a).mean())
    test = stats.ttest_rel(b, a).confidence_interval(0.95)
    wider = np.sqrt((1 / 4 + 1 / 3) / (1 / 4))  # as the folds share training rows
    assert one.high - one.low == pytest.approx((test.high - test.low) * wider)


def test_with_more_settings_the_intervals_are_wider():
    values = np.random.default_rng(0).normal(size=10)
    (_, a, b), (_, c, d) = paired_interval(values), paired_interval(values, 1 - 0.05 / 3)
    assert d - c > b - a
    three = {**TWO, "again": {"model": "naive"}}
    one, other = (
        next(x for x in cd.compare_settings(TABLE, "herb", some, folds=3).differences if x.metric == "brier")
        for some in (TWO, three)
    )
    assert other.high - other.low > one.high - one.low


def test_equal_settings_have_no_differences():
    found = cd.compare_settings(TABLE, "herb", {"a": {"model": "naive"}, "b": {"model": "naive"}}, folds=3)
    assert not any(one.is_significant for one in found.differences)
    assert all(one.mean == 0 for one in found.differences)


def test_chance_differences_are_seldom_significant():
    rng = np.random.default_rng(1)
    wrong = sum(low > 0 or high < 0 for _, low, high in (paired_interval(rng.normal(size=10)) for _ in range(2000)))
    assert wrong / 2000 < 0.05  # the folds of a table are more alike than these: it errs on the safe side


def test_a_fold_without_a_metric_is_left_out():
    assert paired_interval(np.array([np.nan, 1.0, 1.0])) == (1.0, 1.0, 1.0)
    assert np.isnan(paired_interval(np.array([np.nan, 1.0]))[1])


def test_the_command(file):
    found = CliRunner().invoke(cli, ["compare", file, "-t", "herb", "--folds", "3"], catch_exceptions=False)
    assert "bayes minus naive" in found.output
    typed = ["compare", file, "-t", "herb", "--folds", "3", "--json", "--try", "--model naive --drop soil"]
    found = CliRunner().invoke(cli, [*typed, "--model", "naive"], catch_exceptions=False)
    facts = json.loads(found.output)
    assert facts["names"] == ["naive", "--model naive --drop soil"]
    without = cd.cross_validate(file, "herb", model="naive", drop=["soil"], folds=3).total
    assert facts["metrics"]["--model naive --drop soil"]["log_loss"] == pytest.approx(without.log_loss)
    assert {"name", "metric", "mean", "low", "high", "is_significant", "is_better"} == set(facts["differences"][0])
    assert len(facts["conclusions"]) == 1


def test_shared_options_apply_to_all_settings(file):
    typed = ["compare", file, "-t", "herb", "--folds", "3", "--json", "--drop", "soil", "--model", "naive"]
    facts = json.loads(CliRunner().invoke(cli, [*typed, "--try", "--select 2 --model naive"]).output)
    without = cd.cross_validate(file, "herb", model="naive", drop=["soil"], folds=3).total
    assert facts["metrics"]["naive"]["log_loss"] == pytest.approx(without.log_loss)


@pytest.mark.parametrize(("settings", "word"), [({}, "0 setting"), ({"one": {"model": "naive"}}, "1 setting")])
def test_fewer_than_two_settings_are_an_error(settings, word):
    with pytest.raises(InputError, match=word) as error:
        compare_settings(TABLE, "herb", settings)
    assert "two" in error.value.remedy


def test_standard_input_cannot_be_read_twice():
    with pytest.raises(InputError, match="once only"):
        compare_settings("-", "herb", TWO)


def test_an_unknown_option_of_a_setting_is_an_error(file):
    with pytest.raises(InputError, match="slect"):
        cd.compare_settings(TABLE, "herb", {"a": {"slect": 3}, "b": {}})
    found = CliRunner().invoke(cli, ["compare", file, "-t", "herb", "--try", "--slect 3", "--model", "naive"])
    assert found.exit_code == 2
    assert "--slect" in found.output
