"""A text file in any encoding is the same table, through every task."""

import bz2
import gzip
import lzma
import warnings

import pytest

import candide as cd
from candide.data.notes import DataWarning
from candide.engines.duckdb.character_encodings import LineNumbers, MixedDecoder, guess_encoding
from candide.engines.reading import ReadOptions
from candide.errors import InputError, SourceError
from candide.fit_source import fit_model
from candide.store.update import count_like
from candide.validation.evaluation import evaluate

TEXT = "größe,preis,y\n" + "".join(f"{i % 7}.5,{'€ viel' if i % 3 else 'wenig'},{'äb'[i % 2]}\n" for i in range(60))
JAPANESE = "物,y\n" + "".join(f"{'林檎' if i % 3 else '梨'},{'ab'[i % 2]}\n" for i in range(60))


def written(path, text, encoding):
    path.write_bytes(text.encode(encoding))
    return str(path)


def answers(fitted, path, reading):
    """The results of every operation on a file."""
    scored = cd.predict_table(fitted, path, keep=["all"], **vars(reading)).to_pylist()
    counted = count_like(fitted, path, reading=reading).class_weight.tolist()
    return (
        scored,
        counted,
        evaluate(fitted, path, reading=reading).n,
        cd.update_model(fitted, path, **vars(reading)).n_rows,
    )


@pytest.mark.filterwarnings("ignore::candide.data.notes.DataWarning")
@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-16", None),
        ("utf-8-sig", None),
        ("utf-32", None),
        ("cp1252", None),
        ("cp1252", "cp1252"),
        ("utf-16-le", None),
        ("utf-16-be", "UTF-16BE"),
        ("iso8859-15", "latin9"),
    ],
)
def test_the_same_in_every_encoding(encoding, said, tmp_path):
    plain, path = (
        written(tmp_path / "plain.csv", TEXT, "utf-8"),
        written(tmp_path / "rows.csv", TEXT, encoding),
    )
    reading = ReadOptions(encoding=said)
    there = fit_model(plain, "y", model="naive").fitted
    here = fit_model(path, "y", reading=reading, model="naive").fitted
    assert here.counts.plan == there.counts.plan
    assert answers(here, path, reading) == answers(there, plain, ReadOptions())


def test_a_guess_is_reported_and_what_the_file_declares_is_not(tmp_path):
    guessed, marked = written(tmp_path / "a.csv", TEXT, "cp1252"), written(tmp_path / "b.csv", TEXT, "utf-16")
    assert [remark.code for remark in fit_model(guessed, "y", model="naive").notes] == ["encoding"]
    assert "--encoding" in fit_model(guessed, "y", model="naive").notes[0].remedy
    assert fit_model(marked, "y", model="naive").notes == []
    fitted = fit_model(marked, "y", model="naive").fitted
    for task in (cd.predict_table, cd.evaluate, cd.update_model):
        with pytest.warns(DataWarning, match="cp1252"):
            task(fitted, guessed)


def test_what_cannot_be_guessed_is_an_error_and_its_remedy_helps(tmp_path):
    path = written(tmp_path / "a.csv", JAPANESE, "shift_jis")
    with pytest.raises(SourceError, match="not UTF-8") as error:
        fit_model(path, "y", model="naive")
    assert "--encoding" in error.value.remedy
    levels = (
        fit_model(path, "y", reading=ReadOptions(encoding="shift_jis"), model="naive")
        .fitted.counts.plan.parts[0]
        .levels[0]
    )
    assert levels.values == ("林檎", "梨")
    russian = written(tmp_path / "b.csv", "жюл,y\n" + "яблоки,a\nлимюн,b\n" * 9, "cp1251")
    with pytest.raises(SourceError):
        fit_model(russian, "y", model="naive")


def test_bytes_that_are_not_of_the_encoding_name_the_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n1,a\n2,b\n3\x81,a\n")
    with pytest.raises(SourceError) as error:
        fit_model(str(path), "y", reading=ReadOptions(encoding="cp1252"), model="naive")
    assert error.value.line == 4
    census = fit_model(
        str(path),
        "y",
        events={"x": "categorical"},
        reading=ReadOptions(encoding="cp1252", errors="ignore"),
        model="naive",
    )
    assert census.fitted.counts.n_rows == 3
    with pytest.raises(InputError) as unknown:
        fit_model(str(path), "y", reading=ReadOptions(encoding="klingon"), model="naive")
    assert unknown.value.value == "klingon"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_packed(pack, encoding, tmp_path):
    ending = {gzip: "gz", bz2: "bz2", lzma: "xz"}
    path = tmp_path / f"a.csv.{next(e for module, e in ending.items() if pack is module.compress)}"
    path.write_bytes(pack(TEXT.encode(encoding)))
    assert fit_model(str(path), "y", model="naive").fitted.counts.n_rows == 60


def test_files_of_a_divided_table_each_in_its_own(tmp_path):
    for year, encoding in ((2023, "utf-16"), (2024, "utf-8")):
        (tmp_path / f"year={year}").mkdir()
        written(tmp_path / f"year={year}" / "a.csv", TEXT, encoding)
    census = fit_model(str(tmp_path), "y", model="naive").fitted.counts
    assert census.n_rows == 120
    assert "year" in census.plan.columns


def test_a_letter_on_the_edge_of_a_piece(tmp_path, monkeypatch):
    monkeypatch.setattr("candide.engines.duckdb.character_encodings._PIECE_BYTES", 7)
    path = written(tmp_path / "a.csv", TEXT, "utf-16")
    assert fit_model(path, "y", model="naive").fitted.counts.n_rows == 60
    assert fit_model(written(tmp_path / "b.csv", TEXT, "utf-8"), "y", model="naive").notes == []


def test_what_is_written_is_utf_8_and_reported(tmp_path):
    path, out = written(tmp_path / "a.csv", TEXT, "utf-16"), tmp_path / "out.csv"
    fitted = fit_model(path, "y", model="naive").fitted
    with pytest.warns(DataWarning, match="UTF-8") as told:
        cd.predict_table(fitted, path, out=out, keep=["preis"])
    assert [one.message.note.code for one in told] == ["written-utf-8"]
    assert "€ viel" in out.read_text("utf-8")


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_model(written(tmp_path / "a.csv", TEXT, "utf-16"), "y", model="naive")
    assert list((tmp_path / "tmp").iterdir()) == []


def mixed_lines(n, western):
    """Lines of a CSV in UTF-8, but for those with the given numbers, which are cp1252."""
    lines = ["ort,preis,y", *(f"{('Köln', 'Łódź', 'Genève')[i % 3]},{i % 7}.5,{'ab'[i % 2]}" for i in range(n - 1))]
    lines = [line if number not in western else line.replace("Łódź", "Köln") for number, line in enumerate(lines, 1)]
    return b"".join(
        f"{line}\n".encode("cp1252" if number in western else "utf-8") for number, line in enumerate(lines, 1)
    )


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
def test_one_line_in_another_encoding_leaves_the_others_as_they_are(mark, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(mark + mixed_lines(61, {17}))
    learned = fit_model(str(path), "y", model="naive")
    levels = learned.fitted.counts.plan.parts[0].levels[0].values
    assert levels == ("Genève", "Köln", "Łódź")
    [note] = [remark for remark in learned.notes if remark.code == "encoding"]
    assert "mixes encodings: line 17 as cp1252, the others as UTF-8" in note.text
    assert "--encoding cp1252" in note.remedy
    with pytest.warns(DataWarning, match="line 17 as cp1252"):
        assert {row["ort"] for row in cd.predict_table(learned.fitted, str(path), keep=["all"]).to_pylist()} == set(
            levels
        )


def test_lines_in_utf_8_among_many_in_another_encoding(tmp_path):
    path = tmp_path / "a.csv"
    western = set(range(2, 400)) - {5, 50, 300, 301, 302}
    path.write_bytes(mixed_lines(399, western))
    learned = fit_model(str(path), "y", model="naive")
    assert learned.fitted.counts.plan.parts[0].levels[0].values[:2] == ("Genève", "Köln")
    [note] = [remark for remark in learned.notes if remark.code == "encoding"]
    assert "lines 5, 50, 300 and 2 more as UTF-8, the others as cp1252" in note.text


def test_mixed_lines_on_the_edge_of_a_piece(tmp_path, monkeypatch):
    monkeypatch.setattr("candide.engines.duckdb.character_encodings._PIECE_BYTES", 7)
    path = tmp_path / "a.csv"
    path.write_bytes(mixed_lines(31, {17}))
    learned = fit_model(str(path), "y", model="naive")
    assert learned.fitted.counts.plan.parts[0].levels[0].values == ("Genève", "Köln", "Łódź")


def test_a_line_in_no_encoding_is_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(mixed_lines(31, set()) + b"K\x81ln,1.5,a\n")
    with pytest.raises(SourceError, match="not UTF-8") as error:
        fit_model(str(path), "y", model="naive")
    assert error.value.line == 32


def test_the_encoding_is_guessed_from_bytes():
    assert guess_encoding(["größe".encode()]) is None
    assert guess_encoding(["größe".encode("utf-16")]) == ("utf-16", True)
    assert guess_encoding(["größe".encode("cp1252")]) == ("cp1252", False)


def test_lines_of_both_encodings_are_counted():
    mixed = MixedDecoder()
    text = mixed.decode("größe\nmüll\n".encode()) + mixed.decode("grün".encode("cp1252"), final=True)
    assert text == "größe\nmüll\ngrün"
    assert (str(mixed.utf8), str(mixed.western)) == ("lines 1, 2", "line 3")
    assert str(LineNumbers([3, 4, 8, 9, 11])) == "lines 3, 4, 8 and 2 more"
