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
_HOST = r"(?:\[[^\]\s]*\]|[^/?#@:,\[\]\s]*)(?::\d*)?"
_WHOLE = re.compile(  # what a server takes for an address; a database, as a user or a password, has %40 for @
    rf"[A-Za-z][A-Za-z0-9+.-]+://(?:[^/?#@:\s]*(?::[^/@\s]*)?@)?{_HOST}(?:,{_HOST})*(?:/[^/?#@\s]*)?"
    r"(?:\?[A-Za-z_]+=[^&=\s]*(?:&[A-Za-z_]+=[^&=\s]*)*)?"
)
_CODED = re.compile(r"(?:[^%]|%(?!00)[0-9A-Fa-f]{2})*", re.DOTALL)
_USER = re.compile(r"(?<=://)([^/?#@:\s]*):(?:(?!\d*\?)[^/\s]*@|(?!\d*(?:[/?]|$))\S*@)")
_GIVEN = re.compile(r"(?<=[?&])((?:ssl)?password)=[^&\s]*&?", re.IGNORECASE)
# Of what is no address all may be the password, from the first colon to the last @, and in settings.
_SPOILT = re.compile(r"(?<=://)([^/?#@:]*):.*@", re.DOTALL)
_SETTINGS = re.compile(r"\?.*?(?:pass|%).*", re.DOTALL | re.IGNORECASE)
_PARTED = re.compile(
    r"(?P<address>(?:[^/?#@\s]*//)?(?:[^/@\s]*@)?(?:\[[^\]]*\]|(?!::).)*)(?:::(?P<rest>.*))?", re.DOTALL
)


def engine_of(data: Any) -> str | None:
    """The name of the engine that an address asks for; None of whatever else holds rows."""
    found = _SCHEME.match(data) if isinstance(data, str) else None
    return _ENGINES.get(found[1].lower()) if found else None


def is_address(text: str) -> bool:
    """Whether a server would take a text for an address: of another it might say what it took for what.

    >>> is_address("postgresql://ann:s%40@host/shop"), is_address("postgresql://ann:s%zz@host/shop")
    (True, False)
    """
    return bool(_WHOLE.fullmatch(text) and _CODED.fullmatch(text))


def shown(text: str) -> str:
    """An address, or the path of a file, without a password in it.

    >>> shown("postgresql://ann@host/shop?password=secret&sslmode=require")
    'postgresql://ann@host/shop?sslmode=require'
    >>> shown("postgresql://ann:s/ecr@t@host/shop"), shown("postgresql://host:5432/shop?user=a@b")
    ('postgresql://ann@host/shop', 'postgresql://host:5432/shop?user=a@b')
    """
    if engine_of(text) is None:
        return told(text)
    address, table = parted(text)
    if not is_address(address):
        return _SETTINGS.sub("", _SPOILT.sub(r"\1@", text))
    return told(address) if table is None else f"{told(address)}::{table}"


def told(text: str) -> str:
    """A message without the passwords of addresses in it.

    >>> told("cannot read https://ann:s@cret@host/rows.csv")
    'cannot read https://ann@host/rows.csv'
    """
    return _GIVEN.sub("", _USER.sub(r"\1@", text)).rstrip("?&") if "://" in text else text


def parted(text: str) -> tuple[str, str | None]:
    """An address, and the table or query that is named after it, behind two colons."""
    found = _PARTED.fullmatch(text)
    assert found is not None  # every part of it may be empty
    return found["address"], found["rest"] or None
