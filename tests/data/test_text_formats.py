"""What a value is as a level, and how numbers, dates and times are read from text."""

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import candide as cd
from candide.data.text_formats import (
    PLAIN_FORMAT,
    TextFormat,
    format_plain_value,
    non_missing_words,
    parse_boolean,
    parse_booleans,
    parse_number,
    parse_plain_number,
    parse_plain_numbers,
    parse_temporal,
    parse_text_value,
    parse_value,
    to_plain_value,
)
from candide.errors import InputError

ZONE = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float32(0.1), 0.1),
        (np.int64(2**53 + 1), 2**53 + 1),
        (np.bool_(True), True),
        (Decimal("9007199254740993"), 2**53 + 1),
        (Decimal("2.50"), 2.5),
        (np.datetime64("2024-02-29T12:00:00.000001999", "ns"), dt.datetime(2024, 2, 29, 12, 0, 0, 1)),
        (pd.Timestamp("2024-02-29 12:00", tz="UTC"), dt.datetime(2024, 2, 29, 12)),
        (dt.datetime(2024, 2, 29, 1, tzinfo=ZONE), dt.datetime(2024, 2, 28, 23)),
        (pd.Timedelta("1 days"), dt.timedelta(1)),
        (np.timedelta64(90, "m"), dt.timedelta(minutes=90)),
    ],
)
def test_values_are_kept_plain(given, kept):
    found = to_plain_value(given)
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("9007199254740993", 2**53 + 1),
        (" 1.50", 1.5),
        ("1e3", 1000.0),
        ("FALSE", False),
        ("2024-02-29", dt.date(2024, 2, 29)),
        ("2024-02-29T12:00:00Z", dt.datetime(2024, 2, 29, 12)),
        ("2024-02-29 12:00:00+02", dt.datetime(2024, 2, 29, 10)),
        ("2024-02-29 12:00:00.5", dt.datetime(2024, 2, 29, 12, 0, 0, 500_000)),
        ("12:30", dt.time(12, 30)),
        ("25:30:00", dt.timedelta(hours=25.5)),
        ("1 day, 2:00:00", dt.timedelta(1, 7200)),
        ("-1 days +22:00:00", dt.timedelta(hours=-2)),
        ("P1DT2H", dt.timedelta(1, 7200)),
        ("PT0.5S", dt.timedelta(seconds=0.5)),
    ],
)
def test_text_means_what_it_spells(text, meant):
    found = parse_value(text)
    assert (found, type(found)) == (meant, type(meant))


@pytest.mark.parametrize(
    "text",
    ["", " ", "P", "-", "PT", "nan", "inf", "1_000", "1e999", "2024-02-30", "24:60", "1.2.3", "20 days off"],
)
def test_text_that_spells_nothing_is_text(text):
    assert parse_value(text) is None


@given(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.dates() | st.datetimes()
    | st.times() | st.timedeltas()
)  # fmt: skip
def test_what_is_written_is_read_again(value):
    assert parse_value(format_plain_value(value)) == value


@given(st.text(max_size=12))
def test_any_text_may_be_asked(text):
    parse_value(text)


@pytest.mark.parametrize("how", [PLAIN_FORMAT, TextFormat(date="%d.%m.%Y")])
def test_text_that_is_not_a_date_stays_text_and_empty_text_is_missing(how):
    assert [parse_text_value(text, how, "date") for text in ("soon", "", "  ", "NA")] == ["soon", None, None, None]


@pytest.mark.parametrize("text", ["soon"])
def test_a_text_that_is_not_a_date_is_refused_where_dates_were_counted(text):
    days = np.array("2020-01-01", "M8[D]") + np.arange(60)
    model = cd.NaiveBayes().fit({"day": days}, np.arange(60) < 30)
    with pytest.raises(InputError) as caught:
        model.predict_proba({"day": [text]})
    assert (caught.value.column, caught.value.value) == ("day", text)
    day = model.predict_proba({"day": ["2020-01-05"]})
    np.testing.assert_allclose(day, model.predict_proba({"day": np.array(["2020-01-05"], "M8[D]")}))


GERMAN = TextFormat(decimal=",", thousands=".", unit="€")


def test_formats_of_numbers():
    texts = ("1.234,56 €", "€ 378,5", "-12", "12.5", "1.23,4")
    assert [bool(re.fullmatch(GERMAN.pattern, text)) for text in texts] == [True, True, True, False, False]
    assert (GERMAN.example, TextFormat(unit="%").example) == ("€1.234,5", "12.5%")
    assert (parse_number("1.234,56 €", GERMAN), parse_number("14.3%", TextFormat(unit="%"))) == (1234.56, 0.143)
    assert parse_text_value("1.234,56 €", GERMAN) == 1234.56
    assert parse_text_value("n/a", TextFormat(missing=("n/a",))) is None
    with pytest.raises(ValueError, match="format"):
        TextFormat(decimal=";")


def test_texts_of_dates_and_times_are_days():
    dates = ("02.01.1970", "1970-01-01T12:00", "soon")
    assert [parse_text_value(text, TextFormat(date="%d.%m.%Y"), "date") for text in dates] == [1.0, 0.5, "soon"]
    times = ("06:00", "1 day 12:00:00", "0.25", "soon")
    assert [parse_text_value(text, kind="time") for text in times] == [0.25, 1.5, "0.25", "soon"]
    assert parse_temporal("20240201") is None
    assert parse_temporal("20240201", TextFormat(date="%Y%m%d")) == parse_temporal("2024-02-01")


def test_plain_numbers():
    assert parse_plain_numbers(("?", "-999", "9999.0", "nan")) == (-999.0, 9999.0)
    assert (parse_plain_number("1_000"), parse_plain_number(" 2.5\u00a0")) == (1000.0, 2.5)
    with pytest.raises(ValueError, match="not a number"):
        parse_plain_number("\u0661\u0662")
    assert (non_missing_words(["-", "seventeen", "N/A"]), non_missing_words(["-"])) == (["seventeen"], ["-"])


def test_booleans_are_pairs_of_words():
    assert (parse_boolean("Yes"), parse_boolean("f"), parse_boolean("maybe")) == (True, False, None)
    assert parse_booleans(["Yes", "no", "unknown"]) == {"Yes": True, "no": False}
    assert (parse_booleans(["n", "e", "s", "w"]), parse_booleans(["y"])) == ({}, {"y": True})
