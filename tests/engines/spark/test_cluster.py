"""A cluster of two workers counts as one process does, also when one of them is lost on the way."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.engines.spark_session import cluster, needs_spark, session, stop

import candide as cd
from candide.engines.base import get_engine
from candide.engines.spark.source import Spark
from candide.fit_source import fit_model
from candide.testing import check_engine

pytestmark = [pytest.mark.all_cases, needs_spark, pytest.mark.filterwarnings("ignore:.*pandas >= 3:FutureWarning")]


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    with (
        cluster(tmp_path_factory.mktemp("spark")) as (address, first),
        session(address, **{"spark.executor.memory": "512m"}) as spark,
    ):
        yield spark, first


@pytest.mark.all_cases
def test_it_passes_the_engine_checks(two_workers):
    spark, _ = two_workers
    check_engine(get_engine("spark"), spark.createDataFrame)


class OnExecutors(Spark):
    """It counts nothing by queries."""

    tally_kinds = frozenset()


@pytest.mark.all_cases
def test_a_worker_is_lost_in_the_middle(two_workers):
    spark, worker = two_workers
    n, parts = 60_000, 20
    rows = spark.range(n, numPartitions=parts).selectExpr("sin(id) AS x", "string(id % 5) AS s", "id % 3 AS y")
    tracker = spark.sparkContext.statusTracker()

    def done():
        stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
        return max((s.numCompletedTasks for s in stages if s and s.numTasks == parts), default=0)

    with ThreadPoolExecutor(1) as pool, OnExecutors().open(rows) as source:
        fit = pool.submit(fit_model, source, "y", model="naive")
        while done() < 3 and not fit.done():
            time.sleep(0.01)
        assert not fit.done()
        stop(worker)
        fitted = fit.result().fitted
    x = np.sin(np.arange(n))
    moments = fitted.counts.tallies[0]
    assert fitted.counts.n_rows == n
    np.testing.assert_array_equal(moments.n[:, 0], [n / 3] * 3)
    np.testing.assert_allclose(moments.mean[:, 0], [x[k::3].mean() for k in range(3)], atol=1e-12)
    assert cd.predict_table(fitted, rows).count() == n
