"""PostgreSQL: the server counts what the array engine counts; what goes wrong there is one line, without a password."""

import re
import shlex
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.typed import run
from tests.engines.postgres_server import PASSWORD

import candide as cd
from candide.cli.group import main
from candide.data.table import Table
from candide.demo import garden_rows as demo_rows
from candide.engines.base import Folds, LabelledSource, get_engine, open_source
from candide.engines.counting import prepare_source
from candide.engines.draw_sample import draw_source_rows
from candide.engines.reading import is_address, redact_address
from candide.errors import InputError, MissingLibraryError, SourceError
from candide.events import Gaussian
from candide.fit_source import fit_model
from candide.model.plan import Plan, PlanPart
from candide.testing import check_engine
from candide.validation.cross_validation import cross_validate
from candide.validation.folds import keep_copies_together

N = 600


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, N)
    return pa.table(
        {
            "id": np.arange(N),
            "size": pa.array(rng.normal(y, 1.0), mask=rng.random(N) < 0.1),
            "kind": np.array(["ant", "bee", "it's"])[rng.integers(0, 2, N) + y],
            "note": [f"{'free prize' if c else 'see you'} at {i % 7} then" for i, c in enumerate(y)],
            "class": np.array(["no", "yes"])[y],
        }
    )


@pytest.fixture(scope="module")
def shop(postgres, rows):
    """The address of a database with the table, a view of it and a role that may read nothing."""
    postgres.make(rows, "orders")
    postgres.run(
        "ALTER TABLE orders ADD PRIMARY KEY (id)",
        "CREATE VIEW recent AS SELECT * FROM orders",
        'CREATE SCHEMA "My Shop"',
        'CREATE TABLE "My Shop"."a.""b"" Ö" AS SELECT * FROM orders',
        "CREATE ROLE nobody LOGIN",
        "CREATE SEQUENCE visits",
    )
    return postgres.address()


@pytest.mark.all_cases
def test_it_passes_the_engine_checks(postgres):
    check_engine(get_engine("postgres"), postgres.make)


def test_moments_far_from_zero_keep_their_digits(postgres):
    """Those of the server are by the updating sums of Youngs and Cramer; the oracle are whole numbers."""
    postgres.run(
        "CREATE TABLE far AS SELECT 1e8::float8 + (i * 7919 % 1000) / 256.0::float8 AS x, i % 2 AS y "
        "FROM generate_series(1, 200000) i"
    )
    [tally] = fit_model(f"{postgres.address()}::far", "y", model="naive").fitted.counts.tallies
    i = np.arange(1, 200_001)
    for c in (0, 1):
        part = (i * 7919 % 1000)[i % 2 == c]
        n, total, square = len(part), int(part.sum()), int((part**2).sum())
        assert tally.mean[c, 0] == pytest.approx(1e8 + total / n / 256, rel=1e-14)
        assert tally.m2[c, 0] == pytest.approx((square - total**2 / n) / 256**2, rel=1e-9)


@pytest.mark.parametrize("asked", ["recent", "SELECT * FROM orders -- all of them", '"My Shop"."a.""b"" Ö"'])
def test_a_view_a_query_and_a_name_in_quotes_are_read_as_the_table_is(shop, rows, asked):
    for model in ("naive", "bayes"):
        found = fit_model(f"{shop}::{asked}", "class", drop=["id"], model=model).fitted
        want = fit_model(Table.from_data(rows), "class", drop=["id"], model=model).fitted
        mine, theirs = (cd.predict_table(fitted, rows)["p_yes"].to_numpy() for fitted in (found, want))
        np.testing.assert_allclose(mine, theirs, atol=1e-9)
    found = cross_validate(f"{shop}::{asked}", "class", drop=["id"], folds=3, model="naive")
    assert found.total.n == N


def test_every_task_reads_a_table(shop, rows):
    data = f"{shop}::orders"
    fitted = fit_model(rows, "class", drop=["id"], model="naive").fitted
    assert cd.evaluate(fitted, data).log_loss == pytest.approx(cd.evaluate(fitted, rows).log_loss, rel=1e-9)
    more = cd.update_model(fitted, data).fitted
    np.testing.assert_allclose(cd.forget_rows(more, data).fitted.counts.class_weight, fitted.counts.class_weight)
    [mine], [theirs] = cd.explain_rows(fitted, data, [7]), cd.explain_rows(fitted, rows, [7])
    assert str(mine.decision) == str(theirs.decision)
    model = cd.fit(shop, target="class", drop=["id"], table="orders")
    assert model.predict_table(f"{shop}::orders")["prediction"].to_pylist() == model.predict(rows).tolist()


def test_the_server_draws_a_sample_and_sends_no_other_rows(postgres):
    postgres.run(
        "CREATE TABLE wide AS SELECT i, CASE WHEN i % 50 = 0 THEN i END AS rare, i % 2 AS y "
        "FROM generate_series(1, 60000) i"
    )
    plan = Plan(("i",), (PlanPart(Gaussian(), ("i",)),))
    with open_source(f"{postgres.address()}::wide") as source:
        some = draw_source_rows(LabelledSource(source, "y"), plan, 1000)
        read = source.rows_read
        assert some.table.equals(draw_source_rows(LabelledSource(source, "y"), plan, 1000).table)
        few = draw_source_rows(LabelledSource(source, "rare"), plan, 1000)  # of 1200 rows that have a label
    x = some.table["f0"].to_numpy()
    assert len(set(x)) == 1000
    assert abs(x.mean() - 30_000) < 5 * 60_000 / np.sqrt(12_000)
    assert (np.diff(some.table["row"].to_numpy()) > 0).all()
    assert 1000 <= read < 4000
    assert few.table.num_rows == 1000
    assert set(np.asarray(few.table["f0"]) % 50) == {0}


def test_copies_of_a_row_are_sampled_and_folded_together(postgres):
    """Though the server draws rows page by page: all are read where some of those are equal."""
    postgres.run(
        "CREATE TABLE copied AS SELECT sin(i) AS a, cos(i * 1.7) AS b, i % 2 AS y "
        "FROM generate_series(1, 2000) i, generate_series(1, 10)"
    )
    with open_source(f"{postgres.address()}::copied") as source:
        prepared = prepare_source(source, "y")
        some = draw_source_rows(LabelledSource(source, "y"), prepared.plan, 1000)
        folds, notes = keep_copies_together(LabelledSource(source, "y"), prepared, Folds(5, 0, "y"))
        batches = list(source.batches(["a"], 1000, folds))
    assert set(some.frequency) == {10.0}
    assert notes == []
    pairs = {(a, f) for batch in batches for a, f in zip(*(c.to_pylist() for c in batch.columns), strict=True)}
    assert len(pairs) == 2000


def test_folds_follow_the_primary_key_wherever_a_row_is_stored(postgres, rows):
    data = postgres.make(rows, "moving")
    postgres.run("ALTER TABLE moving ADD PRIMARY KEY (id)")

    def dealt():
        with open_source(data) as source:
            batches = list(source.batches(["id"], 100, Folds(4, 1, "class")))
        return {
            row: fold for batch in batches for row, fold in zip(*(c.to_pylist() for c in batch.columns), strict=True)
        }

    before, order = dealt(), list(dealt())
    postgres.run("UPDATE moving SET size = size WHERE id % 3 = 0")
    after = dealt()
    assert list(after) != order
    assert after == before


def test_all_is_read_in_one_snapshot(postgres, rows):
    data = postgres.make(rows.slice(0, 100), "growing")
    with open_source(data) as source:
        [first] = source.fetch_rows("SELECT count(*) FROM source")
        postgres.run("INSERT INTO growing SELECT * FROM growing")
        assert source.fetch_rows("SELECT count(*) FROM source") == [first] == [(100,)]
        assert sum(batch.num_rows for batch in source.batches(["id"], 64)) == 100


@pytest.fixture(scope="module")
def types(postgres):
    postgres.run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN score AS smallint CHECK (VALUE > 0)",
        "CREATE TABLE types (f real, n numeric(10,2), w numeric(5,0), free numeric, m money, iv interval, "
        "tz timestamptz, mood mood, id uuid, js jsonb, ch char(4), s score, bits bit(3), list int[], y text)",
        "INSERT INTO types SELECT 0.1, i / 4.0, i, CASE WHEN i = 3 THEN 'NaN' ELSE i / 8.0 END, i::text::money, "
        "make_interval(days => i, hours => 12), '2024-03-01 00:00+02'::timestamptz + i * interval '1 h', "
        "CASE WHEN i % 2 = 0 THEN 'sad'::mood ELSE 'ok' END, md5((i % 3)::text)::uuid, to_jsonb('j' || i % 2), "
        "'c' || i % 2, i % 3 + 1, '101', '{1,2}', CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END "
        "FROM generate_series(1, 40) i",
    )
    return f"{postgres.address()}::types"


def test_types_are_read_as_numbers_times_or_text(types):
    with open_source(types) as source:
        head = source.head(3).to_pylist()[0]
    assert [head[name] for name in ("n", "w", "free", "m", "iv")] == [0.25, 1, 0.125, 1.0, 1.5]
    assert (head["mood"], head["js"], head["ch"], head["s"], head["bits"]) == ("ok", "j1", "c1", 2, "101")
    assert head["id"] == "c4ca4238-a0b9-2382-0dcc-509a6f75849b"
    names = {"f": "categorical", "tz": "categorical", "w": "categorical"}
    found = fit_model(types, "y", events=names, drop=["list"], model="naive").fitted
    with open_source(types) as source:
        table = source.head(99)
    want = fit_model(Table.from_data(table), "y", events=names, drop=["list"], model="naive").fitted
    assert [part.levels for part in found.plan.parts if part.block_kind == "codes"] == [
        part.levels for part in want.plan.parts if part.block_kind == "codes"
    ]
    assert found.plan.parts[0].columns == want.plan.parts[0].columns
    np.testing.assert_allclose(found.counts.tallies[0].n, want.counts.tallies[0].n)  # NaN is missing


def test_columns_are_passed_on_as_they_are(types, tmp_path):
    fitted = fit_model(types, "y", drop=["list"], model="naive").fitted
    cd.predict_table(fitted, types, out=tmp_path / "out.parquet", keep=["n", "tz", "mood"])
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.schema.field("n").type == pa.decimal128(10, 2)
    assert out["n"][0].as_py() == Decimal("0.25")
    assert str(out.schema.field("tz").type) == "timestamp[us, tz=UTC]"


@pytest.mark.parametrize("event", ["gaussian", "categorical"])
def test_an_array_is_not_a_value(types, event):
    with pytest.raises(InputError) as caught:
        fit_model(types, "y", events={"list": event}, model="naive")
    assert caught.value.column == "list"


def test_an_infinite_date_is_missing(postgres):
    days = "('2024-01-01'::date + i)"
    postgres.run(
        f"CREATE TABLE ends AS SELECT CASE WHEN i % 4 = 0 THEN 'infinity' ELSE {days} END AS day, "
        f"CASE WHEN i % 4 = 0 THEN '-infinity' ELSE {days}::timestamp END AS time, 'y' || i % 2 AS y "
        "FROM generate_series(1, 80) i"
    )
    for model in ("naive", "bayes"):
        found = fit_model(f"{postgres.address()}::ends", "y", model=model).fitted.counts.select_density_parts()
        assert found.tallies[0].n.sum() == 2 * 60 if model == "naive" else found.n_rows == 80


def test_what_means_a_missing_value_is_one(types):
    with open_source(types, cd.engines.reading.ReadOptions(na=("sad", "1"))) as source:
        head = source.head(2).to_pylist()
    assert [(row["mood"], row["w"]) for row in head] == [("ok", None), (None, 2)]


def test_the_page_on_it_is_right(postgres, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")  # as wide as the page
    plants, herb = demo_rows(2000, seed=0)
    columns = {name: pa.array(column, from_pandas=True) for name, column in plants.items()}
    postgres.make(pa.table({"id": np.arange(2000), **columns, "herb": herb}), "plants")
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "postgres.md").read_text()
    commands = re.findall("^candide (.*)$", text, re.MULTILINE)
    said = [run(*shlex.split(command.replace("$DB", postgres.address()))) for command in commands]
    assert [result.exit_code for result in said] == [0] * 5, [result.output for result in said]
    printed = "".join(result.output for result in said)
    for output in re.findall("^```\n```\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in output.splitlines():
            assert line in printed


def test_how_far_the_server_is_is_not_known_while_it_counts(shop, monkeypatch):
    with open_source(f"{shop}::orders") as source:
        source.start_progress()
        rows, known = source.session.fetch_rows, []
        monkeypatch.setattr(source.session, "fetch_rows", lambda sql: [known.append(source.progress()), rows(sql)][1])
        source.fetch_rows("SELECT count(*) FROM source")
        assert (known, source.progress()) == ([-1.0], 1.0)


def test_a_table_in_parts_is_counted_as_one(postgres):
    postgres.run(
        "CREATE TABLE parted (id int, x float8, y text) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (50)",
        "CREATE TABLE high PARTITION OF parted FOR VALUES FROM (50) TO (99)",
        "INSERT INTO parted SELECT i, sin(i), chr(97 + i % 2) FROM generate_series(98, 0, -1) i",
        "CREATE TABLE unparted AS SELECT * FROM parted",
    )
    models = [cd.fit(f"{postgres.address()}::{name}", target="y", drop=["id"]) for name in ("parted", "unparted")]
    one, other = (model.predict_proba({"x": np.linspace(-1, 1, 9)}) for model in models)
    np.testing.assert_allclose(one, other, atol=1e-12)
    assert models[0].fitted_.counts.n_rows == 99
    with pytest.raises(InputError, match="there is no table"):
        fit_model(f"{postgres.address()}::parts", "y")


def test_a_service_and_a_file_of_passwords_say_who_one_is(postgres, shop, tmp_path, monkeypatch):
    (tmp_path / "services").write_text(f"[shop]\nhost={postgres.folder}\nuser=locked\ndbname=postgres\n")
    secret = PASSWORD.replace(":", "\\:")
    (tmp_path / "passwords").write_text(f"*:*:postgres:locked:{secret}\n")
    (tmp_path / "passwords").chmod(0o600)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "passwords"))
    assert fit_model("postgresql://?service=shop::orders", "class", model="naive", drop=["id"]).fitted.counts.n_rows
    (tmp_path / "passwords").unlink()
    with pytest.raises(InputError, match="password"):
        fit_model("postgresql://?service=shop::orders", "class", model="naive")


# Bad input ------------------------------------------------------------------------------------------------------------

BAD = {  # what is asked of the server, and a word of the remedy
    "wrong password": ("postgresql://locked:{secret}x@/postgres?host={host}::orders", "PGPASSWORD"),
    "no password": ("postgresql://locked@/postgres?host={host}::orders", "PGPASSWORD"),
    "no such user": ("postgresql://nemo@/postgres?host={host}::orders", "USER"),
    "no such database": ("postgresql://candide@/nowhere?host={host}::orders", "DATABASE"),
    "no server": ("postgresql://candide:{secret}@127.0.0.1:1/postgres::orders", "port"),
    "an @ in a password": ("postgresql://candide:s3cret:w@rd/@/postgres?host={host}::orders", "%40"),
    "no table": ("postgresql://candide@/postgres?host={host}::ordres", "::"),
    "several tables": ("postgresql://candide@/postgres?host={host}", "::"),
    "no rights": ("postgresql://nobody@/postgres?host={host}::orders", "GRANT"),
    "a query that is none": ("postgresql://candide@/postgres?host={host}::SELECT FROM WHERE", ""),
    "a query that writes": ("postgresql://candide@/postgres?host={host}::SELECT nextval('visits') AS class", ""),
    "a column twice": ("postgresql://candide@/postgres?host={host}::SELECT 1 AS x, 2 AS x", "AS"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_have_one_line(postgres, shop, name, monkeypatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    address, remedy = BAD[name]
    secret = PASSWORD.replace("@", "%40").replace("/", "%2F").replace(":", "%3A")
    with pytest.raises(InputError) as caught:
        fit_model(address.format(host=postgres.folder, secret=secret), "class", model="naive")
    text = str(caught.value)
    assert remedy in (caught.value.remedy or "")
    assert not any(word in text for word in ("\n", "s3cret", "w@rd"))
    assert caught.value.__cause__ is None


def test_a_value_that_is_not_a_number_is_named(postgres):
    data = postgres.make(pa.table({"x": ["1", "forty"] * 9, "y": ["a", "b"] * 9}))
    with pytest.raises(InputError) as caught:
        fit_model(data, "y", events={"x": "gaussian"}, model="naive")
    assert (caught.value.column, "'forty'" in str(caught.value)) == ("x", True)


def test_a_connection_that_drops_leaves_nothing_behind(postgres, rows, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    fitted = fit_model(rows, "class", drop=["id"], model="naive").fitted
    postgres.run("CREATE TABLE long AS SELECT o.* FROM orders o, generate_series(1, 2000)")
    with open_source(f"{postgres.address()}::long") as source:
        [(pid,)] = source.session.fetch_rows("SELECT pg_backend_pid()")
        batches = source.batches

        def ended(*args):
            for batch in batches(*args):
                postgres.run(f"SELECT pg_terminate_backend({pid})")
                yield batch

        monkeypatch.setattr(type(source), "batches", lambda self, *args: ended(*args))
        with pytest.raises(SourceError) as caught:
            cd.predict_table(fitted, source, out=tmp_path / "out.parquet")
    assert "again" in caught.value.remedy
    assert not list(tmp_path.iterdir())
    postgres.run("DROP TABLE long")


def test_rows_that_are_written_to_a_file_leave_none(shop, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_source(f"{shop}::recent") as source:
        source.materialise()
        assert len(list(tmp_path.iterdir())) == 1
        assert source.head(2).num_rows == 2
    assert not list(tmp_path.iterdir())


LEAKS = [  # addresses whose password is s3cret and what surrounds it, as they should not be written
    "postgresql://ann:s3cret%zzw@rd@host/db::t",
    "postgresql://ann:x@s3cret@host/db::t",
    "postgresql://ann:12@s3cret@host:5432/db::t",
    "postgresql://ann:x/s3cret@host/db::t",
    "postgresql://ann:12/s3cret@host::t",
    "postgresql://ann:x?s3cret@127.0.0.1:1/db::t",
    "postgresql://ann:12?s3cret/@host/db::t",
    "postgresql://ann:x#s3cret:@127.0.0.1:1/db::t",
    "postgresql://ann:x::s3cret/::w@rd@host/db::t",
    "postgresql://ann:x s3cret@host/db::t",
    "postgresql://127.0.0.1:1/db?password=s3cret&sslpassword=w@rd::t",
    "postgresql://127.0.0.1:1/db?user=ann&sslpassword=x&s3cret::t",
    "postgresql://127.0.0.1:1/db?password=%zzs3cret::t",
    "postgresql://127.0.0.1:1/db?pass%77ord=s3cret::t",
    "postgresql://127.0.0.1:1/db?password=s3cret=w@rd::t",
    "postgresql://127.0.0.1:1/db?password=x&s3cret=y",
    "postgresql://127.0.0.1:1/db?password=x&s3cret=y::t",
    "postgresql://127.0.0.1:1/db?password=x::s3cret",
    "postgresql://127.0.0.1:1/db?sslmode=disable&password=x::s3cret::w@rd",
    "postgresql://127.0.0.1:1/db?password=x s3cret",
    "postgresql://ann@127.0.0.1:1/db;password=s3cret::t",
    "postgresql://ann@127.0.0.1:1/db password=s3cret",
]


@pytest.mark.parametrize("address", LEAKS)
def test_a_password_that_is_badly_written_is_not_shown(address):
    with pytest.raises(InputError) as caught:
        fit_model(address, "class", model="naive")
    for text in (redact_address(address), str(caught.value), str(caught.value.__cause__), str(caught.value.remedy)):
        assert not any(word in text for word in ("s3cret", "w@rd"))


OTHERS = [
    "https://ann:x  s3cret@host/t.csv",
    "https://host/t.csv?password=a&s3cret=b c",
    "mysql://ann:x s3cret@host/db",
]
WORDS = [
    "host=h password=s3cret dbname=x",
    "host=h PASSWORD = 'w@rd s3cret' dbname=x",
    "host=h password=w@rd s3cret",
    "sslpassword=s3cret password=w@rd user=ann",
]


@pytest.mark.parametrize("address", [*LEAKS, *OTHERS])
def test_a_password_that_is_typed_where_no_address_is_taken_is_not_shown(address, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["candide", "show", address])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().err
    assert "://" in said
    assert not any(word in said for word in ("s3cret", "w@rd"))


@pytest.mark.parametrize("words", [["fit", "x.csv"], [], ["fit", "x.csv", "--folds"], ["show"]])
@pytest.mark.parametrize("address", [*LEAKS, *OTHERS, *WORDS, "postgresql://ann:s3cret@host/shop"])
def test_a_password_that_is_typed_in_a_wrong_place_is_not_shown(address, words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["candide", *words, address])
    monkeypatch.setenv("COLUMNS", "500")
    with pytest.raises(SystemExit) as caught:
        main()
    said = capsys.readouterr().err
    assert caught.value.code == (1 if words == ["show"] else 2)
    assert redact_address(address).split()[0] in said
    assert not any(word in said for word in ("s3cret", "w@rd"))


def test_settings_after_a_password_are_taken():
    given = "postgresql://127.0.0.1:1/db?password=x&sslmode=disable&application_name=y"
    assert is_address(given)
    assert redact_address(given) == "postgresql://127.0.0.1:1/db"
    assert not is_address(f"{given}&word=z")


def test_tables_are_listed_as_they_may_be_asked_for(postgres, shop):
    with pytest.raises(InputError, match="its tables are") as caught:
        fit_model(f"{shop}::", "class", model="naive")
    assert '"My Shop"."a.""b"" Ö"' in str(caught.value)
    [example] = shlex.split(caught.value.remedy.removeprefix("name one: ").partition(" (or")[0])
    assert fit_model(example, "class", model="naive", drop=["id"])


def test_a_name_in_quotes_is_meant_by_letters(shop):
    assert fit_model(f"{shop}::ORDERS", "class", model="naive", drop=["id"])
    with pytest.raises(InputError, match="no table '\"ORDERS\"'"):
        fit_model(f'{shop}::"ORDERS"', "class", model="naive")


def test_without_the_driver_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(MissingLibraryError) as caught:
        fit_model("postgresql://host/shop::orders", "class")
    assert caught.value.remedy == "pip install 'candide[postgres]'"


def test_a_password_is_written_nowhere(postgres, shop, tmp_path):
    data = f"{postgres.address('locked', PASSWORD)}::orders"
    model, out, page = (tmp_path / name for name in ("m.candide", "out.csv", "page.html"))
    learning = ["--target", "class", "--drop", "id", "--model", "naive"]
    said = [
        run("check", data, "--target", "class"),
        run("fit", data, *learning),
        run("fit", data, *learning, "-o", model),
        run("show", model),
        run("evaluate", data, *learning, "--folds", 3, "--fold-by", "kind"),
        run("evaluate", model, data),
        run("predict", model, data, "-o", out, "--keep", "id"),
        run("drift", model, data),
        run("update", model, data),
        run("report", model, data, "-o", page),
        run("explain", model, data, "--row", 3),
        run("predict", data, model),
        run("evaluate", data, "--target", "nothing"),
    ]
    assert [result.exit_code for result in said] == [3] + [0] * 10 + [1] * 2, [result.output for result in said]
    texts = [result.output + str(result.exception) for result in said]
    texts += [Path(path).read_bytes().decode("latin-1") for path in tmp_path.iterdir()]
    assert "postgresql://locked@" in texts[0] + texts[1]
    for text in texts:
        assert "s3cret" not in text
    assert out.read_text().count("\n") == N + 1
