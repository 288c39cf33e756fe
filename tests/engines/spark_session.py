"""A small session of Spark on this machine, or a cluster of two workers on it, where there is a Java to run them."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

import candide

HAS_SPARK = bool(find_spec("pyspark")) and bool(shutil.which("java") or os.environ.get("JAVA_HOME"))
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # half the time of the JVM goes into compiling what runs once
needs_spark = pytest.mark.skipif(not HAS_SPARK, reason="needs pyspark and a Java runtime")


@contextmanager
def session(master: str = "local[2]", **settings: str) -> Iterator:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).config("spark.log.level", "OFF")
    quick = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.driver.host": "127.0.0.1",
        **settings,
    }
    for name, value in quick.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def cluster(folder: Path, memory: str = "700m") -> Iterator[tuple[str, subprocess.Popen]]:
    """A master and two workers of one core each: its address, and one of the workers."""
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port = some.getsockname()[1]
    address, quiet = f"spark://127.0.0.1:{port}", ("--webui-port", "0")
    each = (*quiet, "--cores", "1", "--memory", memory, address)
    with (
        _running("master.Master", "--port", str(port), *quiet, folder=folder),
        _running("worker.Worker", *each, folder=folder) as first,
        _running("worker.Worker", *each, folder=folder),
    ):
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield address, first


@contextmanager
def _running(name: str, *options: str, folder: Path) -> Iterator[subprocess.Popen]:
    """A program of Spark, in a group of processes of its own."""
    import pyspark

    home = Path(pyspark.__file__).parent
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(folder)}
    env |= {
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "PYTHONPATH": str(Path(candide.__file__).parents[1]),
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *options]
    with open(folder / f"{name}-{len(os.listdir(folder))}.log", "w") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
