"""What a value is as a level, and what a text spells."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide.data.value_identity import format_plain_value, parse_value, to_plain_value

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
def test_what_is_spelled_is_read_again(value):
    assert parse_value(format_plain_value(value)) == value


@given(st.text(max_size=12))
def test_any_text_may_be_asked(text):
    parse_value(text)
