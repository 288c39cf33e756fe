"""A small session of Spark on this machine, or on a cluster of it, where there is a Java to run it."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

HAS_SPARK = bool(find_spec("pyspark")) and bool(shutil.which("java") or os.environ.get("JAVA_HOME"))
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
