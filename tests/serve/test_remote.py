"""A file that is scored through a server comes out as from the model at hand; what goes wrong is one line."""

import json
import socket
import warnings

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from tests.cli.typed import run
from tests.serve.conftest import documents, table
from tests.serve.live import failing, listening
from tests.serve.test_endpoints import same

from candide import store
from candide.errors import InputError, SourceError
from candide.operations import fit_model, predict, predict_remotely
from candide.operations.connection import Connection
from candide.serve import Limits, app


def rows(n=500):
    held = table(n, seed=5)[0]
    return {**held, "age": [None if age > 80 else age for age in held["age"]], "id": list(range(n))}


@pytest.fixture(scope="module")
def server(models):
    """A server that takes few rows at a time."""
    with listening(app(models["naive"], limits=Limits(max_rows=90))) as address:
        yield address


@pytest.fixture
def path(tmp_path):
    held = pa.table(rows())
    pc.write_csv(held, tmp_path / "rows.csv")
    pq.write_table(held, tmp_path / "rows.parquet")
    return tmp_path


def told(work, *args, **options):
    """What a task gives, and what it warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        return work(*args, **options), [str(one.message) for one in found]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("written", ["csv", "parquet", "jsonl"])
def test_the_same_bytes(models, server, path, kind, written):
    how = {"keep": ["id", "age"]}
    data, here, there = str(path / f"rows.{kind}"), path / f"here.{written}", path / f"there.{written}"
    assert told(predict, models["naive"], data, out=here, **how) == told(
        predict_remotely, server, data, out=there, **how
    )
    assert here.read_bytes() == there.read_bytes()


def test_other_models(models, path):
    pq.write_table(pa.table(documents()[0]), path / "texts.parquet")
    numbers = {str(i): [0.5 * i, 1.0, -2.0, None] for i in range(3)}
    pq.write_table(pa.table(numbers), path / "numbers.parquet")
    for name, data in [("bayes", "rows"), ("decides", "rows"), ("documents", "texts"), ("numbers", "numbers")]:
        data = str(path / f"{data}.parquet")
        with listening(app(models[name])) as server:
            wanted, found = predict(models[name], data), predict_remotely(server, data)
        assert found.schema == wanted.schema
        same(found.to_pylist(), wanted.to_pylist())


def test_numbers_and_dates_are_read_as_they_were_spelled(tmp_path):
    lines = [
        f'"{i % 7},5";{1 + i % 28:02}/{1 + i % 12:02}/2024;{"?" if i % 9 == 0 else "ab"[i % 2]}' for i in range(80)
    ]
    labelled = [f"{line};{'yes' if i % 7 > 3 else 'no'}" for i, line in enumerate(lines)]
    (tmp_path / "old.csv").write_text("\n".join(["size;day;kind;good", *labelled]))
    (tmp_path / "new.csv").write_text("\n".join(["size;day;kind", *lines[:9], ";31/01/2024;b"]))
    from candide.engines.reading import ReadOptions

    fitted = fit_model(str(tmp_path / "old.csv"), "good", reading=ReadOptions(na="?")).fitted
    assert fitted.text_formats
    assert fitted.na
    with listening(app(fitted)) as server:
        new = str(tmp_path / "new.csv")
        wanted, found = told(predict, fitted, new), told(predict_remotely, server, new)
    assert found[1] == wanted[1]
    same(found[0].to_pylist(), wanted[0].to_pylist())


def test_no_rows(models, server, tmp_path):
    pq.write_table(pa.table(rows()).slice(0, 0), tmp_path / "none.parquet")
    found = predict_remotely(server, str(tmp_path / "none.parquet"), keep="all")
    assert found.schema == predict(models["naive"], str(tmp_path / "none.parquet"), keep="all").schema
    assert found.num_rows == 0


def test_remarks_are_those_of_the_model_at_hand(models, server, tmp_path):
    """Of a column that no row knows, though parts of another know none of its values; and of one that is not there."""
    held = {name: column for name, column in rows().items() if name != "wet"}
    held["soil"] = ["Clay"] * 500
    held["site"] = ["s1"] + [None] * 200 + ["elsewhere"] * 299
    pq.write_table(pa.table(held), tmp_path / "odd.parquet")
    _, wanted = told(predict, models["naive"], str(tmp_path / "odd.parquet"))
    _, found = told(predict_remotely, server, str(tmp_path / "odd.parquet"))
    assert len(wanted) == 2
    assert found == wanted


def test_a_value_that_cannot_be_used(models, server, tmp_path):
    held = rows()
    held["height"][200] = float("inf")
    pq.write_table(pa.table(held), tmp_path / "odd.parquet")
    errors = []
    for work, of in ((predict, models["naive"]), (predict_remotely, server)):
        with pytest.raises(InputError) as error:
            work(of, str(tmp_path / "odd.parquet"), out=tmp_path / "scored.csv")
        errors.append(error.value)
    assert str(errors[0]) == str(errors[1])
    assert (errors[1].column, errors[1].row) == ("height", 200)
    assert not (tmp_path / "scored.csv").exists()


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def test_nobody_answers(path):
    address = f"http://127.0.0.1:{closed_port()}"
    with pytest.raises(SourceError, match=address):
        predict_remotely(address, str(path / "rows.csv"))


def gone(path, n):
    return "gone" if n > 3 else None


def broken(path, n):
    return (500, b"oh") if n > 3 else None


def busy(path, n):
    return (503, json.dumps({"detail": "no time"}).encode()) if n > 3 else None


@pytest.mark.parametrize("fault", [gone, broken, busy])
def test_a_server_that_fails_in_the_middle_leaves_the_file_as_it_was(models, path, monkeypatch, fault):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    (path / "scored.csv").write_text('prediction,"p_before",log_density\nbefore,1,2\n')
    served = app(models["naive"], limits=Limits(max_rows=90))
    with failing(served, fault) as address, pytest.raises(SourceError) as error:
        predict_remotely(address, str(path / "rows.csv"), out=path / "scored.csv")
    assert error.value.source == address
    assert "before" in (path / "scored.csv").read_text()
    assert {one.name for one in path.iterdir()} == {"rows.csv", "rows.parquet", "scored.csv"}


def test_a_connection_that_is_cut_is_made_again(models, path):
    with failing(app(models["naive"]), lambda path, n: "gone" if n % 2 else None) as address:
        assert predict_remotely(address, str(path / "rows.csv")).equals(
            predict(models["naive"], str(path / "rows.csv"))
        )


def test_other_servers(models, path):
    for fault in ((200, b"hello"), (200, b'{"a": 1}'), (404, b"nothing"), (302, b"")):
        with failing(None, lambda path, n, fault=fault: fault) as address, pytest.raises(InputError):
            predict_remotely(address, str(path / "rows.csv"))
    other = pa.table({"colour": ["red"]})
    pq.write_table(other, path / "other.parquet")
    with listening(app(models["naive"])) as address, pytest.raises(InputError, match="none of the model's columns"):
        predict_remotely(address, str(path / "other.parquet"))


def test_classes_that_come_while_it_is_scored(models, path):
    calls = []
    one, other = app(models["naive"], limits=Limits(max_rows=90)), app(models["documents"])

    async def changing(scope, receive, send):
        calls.append(scope["path"])
        await (one if len(calls) < 5 else other)(scope, receive, send)

    with listening(changing) as address, pytest.raises(InputError):
        predict_remotely(address, str(path / "rows.csv"), out=path / "scored.csv")
    assert not (path / "scored.csv").exists()


def test_addresses_and_tokens(models, path):
    for address in (
        "127.0.0.1:8000",
        "ftp://host",
        "http://",
        "http://host:port",
        "http://ann:secret@host",
        "http://h?x",
    ):
        with pytest.raises(InputError) as error:
            Connection(address)
        assert "secret" not in str(error.value)
    with pytest.raises(InputError, match="token"):
        Connection("http://host", "a\nb")
    with listening(app(models["naive"], token="right", private=True)) as address:
        for token in (None, "wrong"):
            with pytest.raises(SourceError) as error:
                predict_remotely(address, str(path / "rows.csv"), token=token)
            assert "--token" in error.value.remedy
        assert predict_remotely(address + "/", str(path / "rows.csv"), token="right").num_rows == 500


def test_the_command(models, server, path):
    store.save(models["naive"], path / "trees.candide")
    data = str(path / "rows.csv")
    here = run("predict", path / "trees.candide", data, "--keep", "id")
    there = run("predict", data, "--server", server, "--keep", "id")
    assert (there.exit_code, there.stdout) == (0, here.stdout)
    assert run("predict", data, "--server", server, "-o", path / "s.parquet").exit_code == 0
    assert pq.read_table(path / "s.parquet").num_rows == 500
    for more in (["--threshold", ".5"], ["--intervals", ".9"], ["--text", "x"], [data]):
        assert isinstance(run("predict", data, *more, "--server", server).exception, InputError)
