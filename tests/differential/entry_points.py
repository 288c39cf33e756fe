"""Every way to fit a model and every way to predict with one: each gives probabilities, a row for each row asked."""

import csv
import datetime as dt
import io
import json
import subprocess
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tests.cli.typed import output
from tests.engines.test_entry_points_fuzz import ENTRY_POINTS, sql
from tests.export.databases import by_duckdb, by_postgres, by_sqlite
from tests.export.scorers import node, rows_of
from tests.serve.client import ask, stream

import candide as cd
from candide import export
from candide.serve import app

ESTIMATORS = {"naive": cd.NaiveBayes, "bayes": cd.BayesClassifier, "text": cd.TextNB}


def duckdb_table(table, folder):
    path = folder / "rows.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as con:
        con.register("held", table)
        con.execute('CREATE TABLE "rows" AS FROM held')
    return f"{path}::rows"


HOLDERS = {name: ENTRY_POINTS[name] for name in ENTRY_POINTS if name not in ("query", "CSV packed")} | {
    "DuckDB table": duckdb_table,
    "SQL query": lambda table, folder: f"FROM '{sql(table, folder / 'query.parquet')}'",
    "dictionaries": lambda table, folder: table.to_pylist(),
}
IN_MEMORY = ("arrow", "pandas", "polars", "lists", "arrays", "dictionaries")  # what an estimator takes


# Fitting


def fits(case, estimator, folder):
    """Each way to fit the table of a case, by its name: a function that gives the model."""
    if estimator == "text":
        return _text_fits(case)
    events, out = case.events or "auto", {}
    for name, holder in HOLDERS.items():
        held = lambda holder=holder: holder(case.table, folder)  # noqa: E731
        out[f"cd.fit {name}"] = lambda held=held: cd.fit(held(), "y", events=events, model=estimator)
    X, y = case.table.drop(["y"]), np.array(case.table["y"].to_pylist())
    for name in IN_MEMORY:
        held = lambda name=name: HOLDERS[name](X, folder)  # noqa: E731
        out[f"estimator {name}"] = lambda held=held: ESTIMATORS[estimator](events).fit(held(), y)
    return out


def _text_fits(case):
    y, texts = np.array(case.table["y"].to_pylist()), case.table["text"]
    held = {"list": texts.to_pylist(), "objects": np.array(texts.to_pylist(), object), "arrow": texts}
    held |= {"polars": pl.Series(texts.to_pylist()), "frame": case.table.drop(["y"]).to_pandas()}
    return {f"TextNB {name}": lambda some=some: cd.TextNB().fit(some, y) for name, some in held.items()}


# Predicting


class Asked:
    """A model, and the rows that it is asked about."""

    def __init__(self, model, case, folder, postgres=None):
        self.model, self.rows, self.folder, self.postgres = model, case.rows, Path(folder), postgres
        self.labels = [str(label) for label in model.classes_.tolist()]
        self.names = [f"p_{label}" for label in self.labels]

    @property
    def plain(self):
        """The rows as JSON has them."""
        return rows_of(self.rows, self.rows.column_names)

    def of(self, scored):
        """The probabilities in rows of a scored table."""
        return [[float(row[name]) for name in self.names] for row in scored]

    @property
    def x(self):
        """The rows as the estimator takes them in memory."""
        return self.rows["text"].to_pylist() if isinstance(self.model, cd.TextNB) else self.rows


def by_holder(name):
    return lambda asked: asked.of(asked.model.predict_table(HOLDERS[name](asked.rows, asked.folder)).to_pylist())


def in_memory(name):
    return lambda asked: asked.model.predict_proba(
        asked.x if isinstance(asked.model, cd.TextNB) else HOLDERS[name](asked.rows, asked.folder)
    )


def saved_and_loaded(asked):
    path = asked.folder / "model.candide"
    asked.model.save(path)
    return cd.load(path).predict_proba(asked.x)


def by_command(form):
    def score(asked):
        asked.model.save(asked.folder / "model.candide")
        data = HOLDERS["Parquet" if form == "parquet" else "CSV of SQL"](asked.rows, asked.folder)
        out = asked.folder / f"scored.{form}"
        output("predict", asked.folder / "model.candide", data, "-o", out, "--force")
        if form == "parquet":
            return asked.of(pq.read_table(out).to_pylist())
        with open(out, newline="", encoding="utf-8") as file:
            return asked.of(csv.DictReader(file))

    return score


def _answered(asked, body, media="application/json", **headers):
    answer = ask(app(asked.model.fitted_), "/predict", body, media=media, **headers)
    assert answer.status == 200, answer.body[:500]
    return answer


def by_json(asked):
    return asked.of(_answered(asked, asked.plain).json)


def by_csv(asked):
    out = io.StringIO()
    writer = csv.DictWriter(out, asked.rows.column_names)
    writer.writeheader()
    writer.writerows({name: _csv_text(value) for name, value in row.items()} for row in asked.plain)
    return asked.of(_answered(asked, out.getvalue().encode(), "text/csv", accept="application/json").json)


def _csv_text(value):
    return str(value).lower() if isinstance(value, bool) else value


def by_arrow(asked):
    media = "application/vnd.apache.arrow.stream"
    answer = _answered(asked, stream(asked.rows), media, accept=media)
    return asked.of(pa.ipc.open_stream(answer.body).read_all().to_pylist())


def by_module(asked):
    module = {"__name__": "model"}
    exec(compile(export.to_python(asked.model.fitted_), "model.py", "exec"), module)
    typed = asked.rows.to_pylist()
    found = [module["score"](row)["probabilities"] for row in typed]
    written = [module["score"](row)["probabilities"] for row in asked.plain]
    assert np.abs(np.array(found) - written).max() <= 1e-9
    return found


_DRIVE = """
import { readFileSync } from "node:fs";
const { default: model } = await import(process.argv[2]);
const rows = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(rows.map((row) => model.score(row).probabilities)));
"""


def by_javascript(asked):
    module, drive = asked.folder / f"model{id(asked)}.mjs", asked.folder / "drive.mjs"
    module.write_text(export.to_javascript(asked.model.fitted_), "utf-8")
    drive.write_text(_DRIVE)
    sent = {"input": json.dumps(asked.plain), "capture_output": True, "text": True, "encoding": "utf-8"}
    done = subprocess.run([node(), drive, module], **sent)
    module.unlink()
    assert done.returncode == 0, done.stderr[-1000:]
    return json.loads(done.stdout)


def in_database(score):
    def run(asked):
        if "row #" in asked.rows.column_names:  # a column of that name numbers the rows
            return None
        numbered = asked.rows.append_column("row #", pa.array(range(len(asked.rows))))
        return [row[2:] for row in sorted(score(asked)(asked.model.fitted_, numbered), key=lambda row: row[0])]

    return run


def by_onnx(asked):
    from tests.export.test_onnx import run

    return run(asked.model, [{name: _typed(value) for name, value in row.items()} for row in asked.rows.to_pylist()])[1]


def _typed(value):
    return value.astimezone(dt.UTC).replace(tzinfo=None) if isinstance(value, dt.datetime) and value.tzinfo else value


FILES = ("Parquet", "CSV", "CSV of SQL", "JSON lines", "DuckDB table", "SQL query", "relation")
PREDICTIONS = {
    **{f"predict {name}": in_memory(name) for name in IN_MEMORY},
    **{f"predict_table {name}": by_holder(name) for name in FILES},
    "loaded": saved_and_loaded,
    "command, CSV": by_command("csv"),
    "command, Parquet": by_command("parquet"),
    "server, JSON": by_json,
    "server, CSV": by_csv,
    "server, Arrow": by_arrow,
    "Python module": by_module,
    "JavaScript module": by_javascript,
    "SQL in DuckDB": in_database(lambda asked: by_duckdb),
    "SQL in SQLite": in_database(lambda asked: by_sqlite),
    "SQL in PostgreSQL": in_database(lambda asked: by_postgres(asked.postgres)),
    "ONNX": by_onnx,
}
