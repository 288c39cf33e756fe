"""Default priors: no other prior of the grid gives the rows held out of real tables a higher density, by a margin.

Each table is split several times, with few rows and with many to learn from. What counts is log p(value | class) of the
rows left out, a value, over all tables: a prior that is better on one of them and worse on the others is not better.
"""

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.tables import table

import candide as cd
from candide.data.table import Table
from candide.engines import arrays
from candide.events import Categorical, Exponential, Gaussian, NegativeBinomial, Poisson
from candide.model.plan import make_plan
from candide.priors import Dirichlet, Gamma, NormalInverseGamma
from candide.report import summary

NUMBERS = ("iris", "glass", "sonar", "ionosphere", "pima_diabetes", "segment")
WHOLE = ("pima_diabetes", "letter", "breast_cancer_wisconsin")
LEVELS = ("lymphography", "splice", "mushroom", "car_evaluation", "nursery", "german_credit", "adult_train", "bank")
NORMAL = [NormalInverseGamma(a=a, kappa=k) for a in (1.1, 2, 4) for k in (0.001, 0.1, 1)]
GRID = {
    "gaussian": (Gaussian(), NUMBERS, NORMAL),
    "full": (Gaussian(covariance="full"), NUMBERS, NORMAL),
    "categorical": (Categorical(), LEVELS, [Dirichlet(alpha) for alpha in (0.1, 0.3, 1, 3, 10)]),
    "poisson": (Poisson(), WHOLE, [Gamma(rate=rows) for rows in (0.1, 0.3, 3, 10)]),
    "negativebinomial": (NegativeBinomial(), WHOLE, [Gamma(rate=rows) for rows in (0.1, 0.3, 3, 10)]),
    "exponential": (Exponential(), WHOLE, [Gamma(shape=values) for values in (0.1, 0.5, 5, 10)]),
}


def columns(name, event):
    """The columns of a real table that an event model takes, and its labels."""
    rows = pq.read_table(table(f"{name}.parquet")).slice(0, 3000)
    y = rows.column("class").to_pylist()
    found = {c: rows.column(c).to_numpy() for c in rows.column_names if c != "class"}
    if event.kind == "levels":
        return {c: x.astype(object) for c, x in found.items() if x.dtype == object}, y
    numbers = {c: x.astype(float) for c, x in found.items() if x.dtype.kind in "if" and np.std(x) > 0}
    if event.support.low == 0:
        numbers = {c: x for c, x in numbers.items() if x.min() >= 0 and (x == np.floor(x)).all()}
    return {c: x / x.std() if event.support.low < 0 else x for c, x in numbers.items()}, y


def held_out(event, prior, X, y, share, draws=3):
    """Mean log p(value | own class) of the rows that were not learned from."""
    rng, n, means = np.random.default_rng(0), len(y), []
    y = np.array(y, object)
    for _ in range(draws):
        order = rng.permutation(n)
        train, test = order[: int(share * n)], order[int(share * n) :][:500]
        whole = Table.from_data({c: x[train] for c, x in X.items()})
        census = arrays.count_table(whole, y[train].tolist(), plan=make_plan(whole, event).with_levels(whole))
        [part], [tally] = census.plan.parts, census.tallies
        code = {label: i for i, label in enumerate(census.labels.values)}
        test = np.array([i for i in test if y[i] in code])
        log_prob = event.estimate(tally, prior).log_prob(
            part.block(Table.from_data({c: x[test] for c, x in X.items()}))
        )
        means.append(log_prob[np.arange(len(test)), [code[label] for label in y[test]]].mean() / len(X))
    return float(np.mean(means))


@pytest.mark.parametrize("name", GRID)
def test_no_other_prior_fits_rows_held_out_better(name):
    event, tables, grid = GRID[name]
    data = [(*columns(one, event), share) for one in tables for share in (0.15, 0.5)]
    own, *others = (np.mean([held_out(event, prior, *rows) for rows in data]) for prior in (None, *grid))
    assert max(others) - own < 0.03


def test_the_distribution_of_a_class_is_as_wide_as_its_rows():
    model = cd.fit(table("iris.parquet"), target="class", model="naive")
    shown = next(c for c in summary.summarize_model(model.fitted_).columns if c.column == "petallength")
    scale, sd = shown.conditionals["scale"][0], shown.conditionals["sd"][0]
    assert 0.17 < scale < 0.185  # of setosa, whose rows have 0.172; over all classes it is 1.76
    df = shown.conditionals["df"][0]
    assert sd == pytest.approx(scale * np.sqrt(df / (df - 2)))  # of the fit that scores, with counts and without
    alone = next(
        c for c in summary.summarize_model(model.fitted_.without_counts()).columns if c.column == "petallength"
    )
    assert alone.conditionals == shown.conditionals


def test_classes_of_a_single_value_or_row_have_a_spread():
    for x in ([1.0, 1.0, 2.0, 2.0], [1.0, 2.0, 3.0, 4.0]):
        y = [0, 0, 1, 1] if x[0] == x[1] else [0, 1, 2, 3]
        a, b = (cd.NaiveBayes(Gaussian()).fit(np.array(x)[:, None] * unit, y) for unit in (1.0, 1e-6))
        p = a.predict_proba([[1.2]])
        assert 0.5 < p[0, 0] < 1
        np.testing.assert_allclose(b.predict_proba([[1.2e-6]]), p, rtol=1e-9)  # in any unit
