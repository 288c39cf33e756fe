"""Dates are shown as dates, through every door and in every report; within, they stay days since 1970."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.typed import output as run

import candide as cd
from candide import store
from candide.errors import ModelFileError
from candide.fit_source import fit_model
from candide.report import summary
from candide.store.container import pack_container, unpack_container

N = 60
DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=(i * 17) % 50 + 20 * (i % 2)) for i in range(N)]
ROWS = {"when": DAYS, "size": [float(i % 7) for i in range(N)], "y": ["a", "b"] * (N // 2)}


@pytest.fixture(params=["csv", "parquet", "frame"])
def data(request, tmp_path):
    if request.param == "frame":
        return pa.table(ROWS)
    path = tmp_path / f"rows.{request.param}"
    if request.param == "csv":
        lines = [",".join(map(str, row)) for row in zip(*ROWS.values(), strict=True)]
        path.write_text("\n".join([",".join(ROWS), *lines]) + "\n")
    else:
        pq.write_table(pa.table(ROWS), path)
    return str(path)


def test_rows_and_models_show_dates(data, tmp_path):
    fitted = fit_model(data, "y", model="naive").fitted
    [explained] = cd.explain_rows(fitted, data, [3])
    assert next(one.value for one in explained.decision.contributions if one.column == "when") == DAYS[2]
    store.save(fitted, tmp_path / "m.candide")
    loaded = store.load(tmp_path / "m.candide")
    assert loaded.dates == (loaded + loaded).dates == {"when"}
    shown = summary.summarize_model(loaded)
    lines = str(shown).splitlines()
    a = [day for day, y in zip(DAYS, ROWS["y"], strict=True) if y == "a"]
    mean = dt.date(1970, 1, 1) + dt.timedelta(days=sum((d - dt.date(1970, 1, 1)).days for d in a) / len(a) // 1)
    at = next(i for i, line in enumerate(lines) if line.startswith("when (gaussian"))
    assert lines[at + 2].split()[:2] == ["mean", str(mean)]
    assert "days" in lines[at + 3]
    assert "19," not in str(shown)  # no day is a number
    [facts] = [one for one in shown.to_dict()["columns"] if one["column"] == "when"]
    assert facts["is_date"] is True
    assert facts["conditionals"]["mean"][0] == pytest.approx((mean - dt.date(1970, 1, 1)).days, abs=1)


def test_moves_of_dates_are_dates(data):
    fitted = fit_model(data, "y", model="naive").fitted
    later = fit_model({**ROWS, "when": [day + dt.timedelta(days=9) for day in DAYS]}, "y", model="naive").fitted
    assert "2024-01-" in str(summary.summarize_diff(cd.diff_models(fitted, later)))


def test_a_file_names_its_own_columns_as_dates(tmp_path):
    path = tmp_path / "m.candide"
    store.save(fit_model(ROWS, "y", model="naive").fitted, path)
    header, arrays = unpack_container(memoryview(path.read_bytes()), verify=True)
    header["dates"] = ["whenever"]
    path.write_bytes(b"".join(bytes(piece) for piece in pack_container(header, arrays)))
    with pytest.raises(ModelFileError):
        store.load(path)


def test_an_estimator_explains_dates():
    X = {"when": pa.array(DAYS), "size": ROWS["size"]}
    for column in (X["when"], np.array(DAYS, "M8[ns]")):
        model = cd.NaiveBayes().fit({**X, "when": column}, ROWS["y"])
        shown = str(model.explain({"when": column[2:3], "size": [1.0]})[0])
        assert str(DAYS[2]) in shown
        assert "2024-0" in str(summary.summarize_model(model))


# Provenance.


def test_a_fit_keeps_where_the_model_came_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(ROWS), "rows.parquet")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    run("fit", "--model=naive", "rows.parquet", "-t", "y", "--drop", "size", "-o", "m.candide", "--model", "naive")
    expected = {
        "source": "rows.parquet",
        "fitted_rows": "60",
        "date": "1970-01-02T00:00:00Z",
        "version": f"candide {cd.__version__}",
        "options": "--model naive --drop size",
    }
    assert json.loads(run("show", "m.candide", "--json"))["provenance"] == expected
    assert "source: rows.parquet; fitted rows: 60" in run("show", "m.candide")
    assert "changed since" not in run("show", "m.candide")
    before = (tmp_path / "m.candide").read_bytes()
    run("fit", "--model=naive", "rows.parquet", "-t", "y", "--drop", "size", "-o", "m.candide", "--model", "naive")
    assert (tmp_path / "m.candide").read_bytes() == before
    run("update", "m.candide", "rows.parquet")
    assert "120 rows;" in run("show", "m.candide")
    assert "changed since" in " ".join(run("show", "m.candide").replace("│", " ").split())
    run("forget", "m.candide", "rows.parquet")
    assert (tmp_path / "m.candide").read_bytes() == before
    run("fit", "--model=naive", "rows.parquet", "-t", "y", "-o", "n.candide", "--no-provenance", "--model", "naive")
    assert store.load("n.candide").provenance == {}


@pytest.mark.parametrize("event", ["gaussian", "categorical", "auto"])
@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_of_any_unit_and_zone_are_read_from_files_and_frames(event, unit, zone, tmp_path):
    moments = [dt.datetime(2024, 1, 1, 22) + dt.timedelta(hours=(i * 7) % 30) for i in range(N)]
    held = pa.array(moments, pa.timestamp("us", zone))
    rows = pa.table({"when": held, "y": ROWS["y"]})
    events = "auto" if event == "auto" else {"when": event}
    expected = cd.fit(rows, target="y", model="naive", events=events).predict_proba(rows.select(["when"]))
    rows = rows.set_column(0, "when", held.cast(pa.timestamp(unit, zone)))
    pq.write_table(rows, tmp_path / "rows.parquet")
    for data in (rows, str(tmp_path / "rows.parquet")):
        model = cd.fit(data, target="y", model="naive", events=events)
        scored = model.predict_table(data).to_pylist()
        assert np.array([[row["p_a"], row["p_b"]] for row in scored]) == pytest.approx(expected, abs=1e-9)
