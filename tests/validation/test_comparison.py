"""Settings compared on the same folds."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import candide as cd
from candide.cli import cli
from candide.demo import garden_rows
from candide.errors import InputError
from candide.validation.comparison import compare_settings, paired_interval

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
