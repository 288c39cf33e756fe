"""Options of reading, and addresses without their passwords."""

import pytest

from candide.engines.reading import ReadOptions, is_address, redact_address, redact_passwords, split_table


def test_missing_values_are_a_tuple():
    assert ReadOptions(na="?").na_values == ("?",)
    assert ReadOptions(na=("?", "n/a")).na_values == ("?", "n/a")


def test_the_table_follows_two_colons():
    assert split_table("postgresql://ann@[::1]/shop::sales.orders") == ("postgresql://ann@[::1]/shop", "sales.orders")
    assert split_table("postgresql://ann@[::1]/shop") == ("postgresql://ann@[::1]/shop", None)


def test_an_address_is_percent_encoded():
    assert is_address("postgresql://ann:s%40@host/shop")
    assert not is_address("postgresql://ann:s%zz@host/shop")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:secret@host/shop::orders", "postgresql://ann@host/shop::orders"),
        ("rows.csv", "rows.csv"),
        (
            "postgresql://ann@host/shop?sslmode=require&password=secret::orders",
            "postgresql://ann@host/shop?sslmode=require",
        ),
        ("postgresql://ann:s/ecr@t@host/shop", "postgresql://ann@host/shop"),
        ("postgresql://host:5432/shop?user=a@b", "postgresql://host:5432/shop?user=a@b"),
        ("postgresql://ann@host/shop;password=secret", "postgresql://ann@host/shop"),
        ("host=h password=my secret dbname=shop", "host=h password=*** dbname=shop"),
    ],
)
def test_addresses_are_shown_without_passwords(address, shown):
    assert redact_address(address) == shown


@pytest.mark.parametrize(
    ("text", "typed", "shown"),
    [
        (
            "unexpected argument (host=h password=secret dbname=shop)",
            [],
            "unexpected argument (host=h password=*** dbname=shop)",
        ),
        ("cannot read https://ann:s@cret@host/rows.csv", [], "cannot read https://ann@host/rows.csv"),
        ("no file x://ann:my secret@host", ["x://ann:my secret@host"], "no file x://ann@host"),
    ],
)
def test_messages_have_no_passwords(text, typed, shown):
    assert redact_passwords(text, typed) == shown
