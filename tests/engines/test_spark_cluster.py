"""A cluster of two workers counts as one process does, also when one of them is lost on the way."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.engines.spark_session import needs_spark, session

import candide
from candide.engines.base import engine
from candide.tasks.learn import learn
from candide.tasks.predict import predict
from candide.testing.engines import Trial, _cases, counting, sampling, scoring

pytestmark = [needs_spark, pytest.mark.filterwarnings("ignore:.*pandas >= 3:FutureWarning")]


@contextmanager
def running(name, *options, folder):
    """A program of Spark, in a group of processes of its own."""
    import pyspark

    home = Path(pyspark.__file__).parent
    source = str(Path(candide.__file__).parents[1])
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(folder)}
    env |= {"PYTHONPATH": source, "PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "256m"}
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *options]
    with open(folder / f"{name}-{len(os.listdir(folder))}.log", "w") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        stop(process)


def stop(process):
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port = some.getsockname()[1]
    address, quiet = f"spark://127.0.0.1:{port}", ("--webui-port", "0")
    each = (*quiet, "--cores", "1", "--memory", "700m", address)
    with (
        running("master.Master", "--port", str(port), *quiet, folder=folder),
        running("worker.Worker", *each, folder=folder) as first,
        running("worker.Worker", *each, folder=folder),
    ):
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        with session(address, **{"spark.executor.memory": "512m"}) as spark:
            yield spark, first


def test_it_counts_draws_and_scores(cluster):
    spark, _ = cluster
    trial = Trial(engine("spark"), spark.createDataFrame, *_cases(0)["every event model"])
    for law in (counting, sampling, scoring):
        law(trial)


def test_a_worker_is_lost_in_the_middle(cluster):
    spark, worker = cluster
    n, parts = 60_000, 20
    rows = spark.range(n, numPartitions=parts).selectExpr("sin(id) AS x", "string(id % 5) AS s", "id % 3 AS y")
    tracker = spark.sparkContext.statusTracker()

    def done():
        stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
        return max((s.numCompletedTasks for s in stages if s and s.numTasks == parts), default=0)

    with ThreadPoolExecutor(1) as pool:
        fit = pool.submit(learn, rows, "y", model="naive")
        while done() < 3 and not fit.done():
            time.sleep(0.01)
        assert not fit.done()
        stop(worker)
        fitted = fit.result().fitted
    x = np.sin(np.arange(n))
    moments = fitted.census.tallies[0]
    assert fitted.census.n_rows == n
    np.testing.assert_array_equal(moments.n[:, 0], [n / 3] * 3)
    np.testing.assert_allclose(moments.mean[:, 0], [x[k::3].mean() for k in range(3)], atol=1e-12)
    assert predict(fitted, rows).count() == n
