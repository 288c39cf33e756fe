"""The adult table: missing values, shuffled columns, a model assembled by hand from scikit-learn's parts."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.preprocessing import OrdinalEncoder
from tests.tables import table

import candide as cd
from candide.data.table import Table
from candide.fit_source import fit_model
from candide.model.settings import Settings
from candide.priors import AddedVariance
from candide.validation.evaluation import evaluate


@pytest.fixture(scope="module")
def train() -> str:
    return table("adult_train.parquet")


@pytest.fixture(scope="module")
def test() -> str:
    return table("adult_test.parquet")


def test_shuffled_and_missing_columns(train, test):
    fitted = fit_model(train, "class", model="naive").fitted
    whole = cd.predict_table(fitted, test)
    rows = pq.read_table(test)
    shuffled = rows.select(rows.column_names[::-1])
    pd.testing.assert_frame_equal(cd.predict_table(fitted, shuffled).to_pandas(), whole.to_pandas())
    with pytest.warns(UserWarning, match="lacks 'occupation'"):
        less = cd.predict_table(fitted, shuffled.drop_columns(["occupation"])).to_pandas()
    assert np.isfinite(less.drop(columns="prediction")).all().all()
    assert 0.5 < (less["prediction"] == whole.to_pandas()["prediction"]).mean() < 1


def test_accuracy_on_the_official_split(train, test):
    scores = evaluate(fit_model(train, "class", model="naive").fitted, test)
    assert scores.n == 16281
    assert scores.accuracy == pytest.approx(0.830, abs=0.001)


def test_equals_the_model_assembled_by_hand_from_scikit_learn(train, test):
    frame = pq.read_table(train).to_pandas().dropna()
    new = pq.read_table(test).to_pandas().dropna()
    y = frame["class"]
    names = [c for c in frame.columns if c != "class" and not pd.api.types.is_numeric_dtype(frame[c])]
    numbers = [c for c in frame.columns if c != "class" and c not in names]
    encoder = OrdinalEncoder(dtype=int).fit(frame[names])
    categories = CategoricalNB(alpha=1.0).fit(encoder.transform(frame[names]), y)
    gauss = GaussianNB(var_smoothing=1e-9).fit(frame[numbers], y)
    joint = gauss.predict_joint_log_proba(new[numbers]) + categories.predict_joint_log_proba(
        encoder.transform(new[names])
    )
    joint -= np.log(gauss.class_prior_)  # the prior was in both
    p = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])

    priors = {"gaussian": AddedVariance(1e-9), "categorical": "dirichlet"}
    settings = Settings(estimate={"gaussian": "mle", "categorical": "mean"}, param_priors=priors)
    fitted = fit_model(
        frame, "class", events=dict.fromkeys(numbers, "gaussian"), settings=settings, model="naive"
    ).fitted
    np.testing.assert_allclose(fitted.posterior(Table.from_data(new)), p, rtol=1e-9, atol=1e-12)
