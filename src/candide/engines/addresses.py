"""Addresses of databases: what they name, how they are shown, and which engine opens them.

A password in one is for the server alone: whatever is printed, written or raised has the address as it is shown.

>>> shown("postgresql://ann:secret@host/shop::orders"), shown("rows.csv")
('postgresql://ann@host/shop::orders', 'rows.csv')
>>> parted("postgresql://ann@[::1]/shop::sales.orders"), parted("postgresql://ann@[::1]/shop")
(('postgresql://ann@[::1]/shop', 'sales.orders'), ('postgresql://ann@[::1]/shop', None))
"""

import re
from typing import Any

_ENGINES = {"postgresql": "postgres", "postgres": "postgres", "spark": "spark"}  # scheme -> engine
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
# A password, were it written as it may not be: one with an @ or / in it goes to the last @ there is.
_USER = re.compile(r"(?<=://)([^/?#@:\s]*):(?:[^/@\s]*@|(?!\d*(?:[/?]|$))\S*@)")
_GIVEN = re.compile(r"(?<=[?&])((?:ssl)?password)=[^&\s]*&?", re.IGNORECASE)
_PARTED = re.compile(
    r"(?P<address>(?:[^/?#@\s]*//)?(?:[^/?#@\s]*@)?(?:\[[^\]]*\]|(?!::).)*)(?:::(?P<rest>.+))?", re.DOTALL
)


def engine_of(data: Any) -> str | None:
    """The name of the engine that an address asks for; None of whatever else holds rows."""
    found = _SCHEME.match(data) if isinstance(data, str) else None
    return _ENGINES.get(found[1].lower()) if found else None


def shown(text: str) -> str:
    """A text without the password of an address in it.

    >>> shown("postgresql://ann@host/shop?password=secret&sslmode=require")
    'postgresql://ann@host/shop?sslmode=require'
    >>> shown("postgresql://ann:s/ecr@t@host/shop"), shown("postgresql://host:5432/shop?user=a@b")
    ('postgresql://ann@host/shop', 'postgresql://host:5432/shop?user=a@b')
    """
    address, table = (text, None) if engine_of(text) is None else parted(text)
    if "://" in address:
        address = _GIVEN.sub("", _USER.sub(r"\1@", address)).rstrip("?&")
    return address if table is None else f"{address}::{table}"


def parted(text: str) -> tuple[str, str | None]:
    """An address, and the table or query that is named after it, behind two colons."""
    found = _PARTED.fullmatch(text)
    assert found is not None  # every part of it may be empty
    return found["address"], found["rest"]
