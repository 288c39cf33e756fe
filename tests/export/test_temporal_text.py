"""Text in columns of dates and times: words for a missing value are missing; other text is refused, missing to SQL."""

import datetime as dt
import warnings

import numpy as np
import pyarrow as pa
import pytest
from tests.export.databases import DATABASES, by_postgres

import candide as cd
from candide.errors import InputError

FORMATS = {
    "dates": lambda i: str(dt.date(2024, 1, 1) + dt.timedelta(days=i)),
    "German dates": lambda i: f"{dt.date(2024, 1, 1) + dt.timedelta(days=i):%d.%m.%Y}",
    "times": lambda i: f"{i // 60 % 24:02d}:{i % 60:02d}:00",
    "durations": lambda i: f"{i // 24} days {i % 24:02d}:00:00",
}
TEXTS = [
    "2024-02-29", "29.02.2024", "20240229", "20120201", "1709164800", "45", "0.25", "15:00:00", "2 days 03:00:00",
    "true", "soon",
]  # fmt: skip
MISSING = ["", " ", "NA", "n/a", " null ", "-", "?", "None"]


@pytest.fixture(scope="module", params=[(name, words) for name in FORMATS for words in (False, True)], ids=str)
def model(request):
    name, words = request.param
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=200)
    texts = [FORMATS[name](int(i)) for i in rng.integers(0, 90, size=200) + 60 * y]
    texts = ["n/a" if words and i % 20 == 0 else text for i, text in enumerate(texts)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cd.NaiveBayes().fit({"x": texts}, y)


def predicted(model, value):
    """The probabilities of a row; None where its value is refused."""
    try:
        return model.predict_proba({"x": [value]})[0].tolist()
    except InputError:
        return None


@pytest.mark.filterwarnings("ignore:.*taken as missing")
def test_words_for_missing_are_missing_and_numbers_are_refused(model, tmp_path):
    missing, path = predicted(model, None), tmp_path / "rows.csv"
    for value in MISSING:
        assert predicted(model, value) == missing, value
        path.write_text(f'x,z\n"{value}",1\n')
        for rows in (pa.table({"x": [value]}), str(path)):
            assert model.predict_table(rows)["p_0"].to_pylist() == pytest.approx(missing[:1]), value
    for value in ("20240229", "1709164800", "45", "0.25", "true", "soon"):
        assert predicted(model, value) is None, value
        path.write_text(f"x,z\n{value},1\nNA,2\n")
        with pytest.raises(InputError, match=f"'{value}' is not a (date|time of day or duration);"):
            model.predict_table(str(path))


@pytest.mark.parametrize("database", [*DATABASES, "postgres"])
def test_a_query_reads_the_text_that_exported_python_reads(model, database, request):
    if database == "sqlite" and any(how.date for how in model.fitted_.text_formats.values()):
        pytest.skip("SQLite reads dates in no other format")
    score, module = DATABASES.get(database) or by_postgres(request.getfixturevalue("postgres")), {}
    exec(model.export("python"), module)
    given, missing = [*TEXTS, *MISSING], predicted(model, None)
    rows = pa.table({"x": given, "row #": range(len(given))})
    for value, (_, _, *found) in zip(given, sorted(score(model.fitted_, rows)), strict=True):
        try:
            expected = module["score"]({"x": value})["probabilities"]
        except ValueError:
            expected = missing
        else:
            assert predicted(model, value) == pytest.approx(expected), value
        assert found == pytest.approx(expected, abs=1e-9), value
