"""Addresses of databases: what they name, how they are shown, and which engine opens them.

A password in one is for the server alone: whatever is printed, written or raised has the address as it is shown.

>>> redact_address("postgresql://ann:secret@host/shop::orders"), redact_address("rows.csv")
('postgresql://ann@host/shop::orders', 'rows.csv')
>>> split_table("postgresql://ann@[::1]/shop::sales.orders"), split_table("postgresql://ann@[::1]/shop")
(('postgresql://ann@[::1]/shop', 'sales.orders'), ('postgresql://ann@[::1]/shop', None))
"""

import re
from collections.abc import Iterable
from typing import Any

_ENGINES = {"postgresql": "postgres", "postgres": "postgres", "spark": "spark"}  # scheme -> engine
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_HOST = r"(?:\[[^\]\s]*\]|[^/?#@:,\[\]\s]*)(?::\d*)?"
_FULL_ADDRESS = (
    re.compile(  # what a server takes for an address; a database, as a user or a password, has %40 for @, and %3D for =
        rf"[A-Za-z][A-Za-z0-9+.-]+://(?:[^/?#@:\s]*(?::[^/@\s]*)?@)?{_HOST}(?:,{_HOST})*(?:/[^/?#@=\s]*)?"
        r"(?:\?[A-Za-z_]+=[^&=\s]*(?:&[A-Za-z_]+=[^&=\s]*)*)?"
    )
)
_PERCENT_ENCODED = re.compile(r"(?:[^%]|%(?!00)[0-9A-Fa-f]{2})*", re.DOTALL)
_USER_PASSWORD = re.compile(r"(?<=://)([^/?#@:\s]*):(?:(?!\d*\?)[^/\s]*@|(?!\d*(?:[/?]|$))\S*@)")
# Whatever follows a password in settings may be the rest of it, up to a setting that there is.
_QUERY_PASSWORD = re.compile(r"[?&](?:ssl)?password=.*", re.IGNORECASE | re.DOTALL)
_SETTING_NAMES = (
    r"host(?:addr)?|port|dbname|user|pass\w+|ssl\w*|require\w*|channel_binding|connect_timeout|client_encoding|options|"
    r"\w*application_name|keepalives\w*|tcp_user_timeout|replication|gss\w*|krb\w*|scram\w*|oauth\w*|service\w*|"
    r"target_session_attrs|load_balance_hosts|m\w\w_protocol_version"
)
_TRAILING_SETTINGS = re.compile(rf"(?:&(?:{_SETTING_NAMES})=[^&]*)*")
# Of what is no address all may be the password, from the first colon to the last @, and in settings.
_MALFORMED_USER = re.compile(r"(?<=://)([^/?#@:]*):.*@", re.DOTALL)
_PASSWORD_SETTINGS = re.compile(r"\?.*?(?:pass|%).*|\W?\b\w*password\s*=.*", re.DOTALL | re.IGNORECASE)
# In words, as ``host=h password=secret dbname=shop``, up to a setting; and in a message, where only a space ends one
_KEYWORD_PASSWORD = re.compile(rf"(\b\w*password\s*=)(?:(?!\s(?:{_SETTING_NAMES})\s*=).)*", re.DOTALL | re.IGNORECASE)
_MESSAGE_PASSWORD = re.compile(r"(\b\w*password\s*=)\s*(?:'(?:[^'\\]|\\.)*'|[^\s)]*)", re.IGNORECASE)
_ADDRESS_AND_TABLE = re.compile(
    r"(?P<address>(?:[^/?#@\s]*//)?(?:[^/@\s]*@)?(?:\[[^\]]*\]|(?!::).)*)(?:::(?P<rest>.*))?", re.DOTALL
)


def find_engine_name(data: Any) -> str | None:
    """The name of the engine that an address asks for; None of whatever else holds rows."""
    found = _SCHEME.match(data) if isinstance(data, str) else None
    return _ENGINES.get(found[1].lower()) if found else None


def is_address(text: str) -> bool:
    """Whether a server would take a text for an address: of another it might say what it took for what.

    >>> is_address("postgresql://ann:s%40@host/shop"), is_address("postgresql://ann:s%zz@host/shop")
    (True, False)
    """
    given = _QUERY_PASSWORD.search(text)
    rest = given[0][1:].partition("&") if given else ("", "", "")
    followed = _TRAILING_SETTINGS.fullmatch("".join(rest[1:]))
    return bool(_FULL_ADDRESS.fullmatch(text) and _PERCENT_ENCODED.fullmatch(text) and followed)


def has_password_setting(address: str) -> bool:
    """Whether a password stands in the settings of an address: whatever follows may be the rest of it."""
    return _QUERY_PASSWORD.search(address) is not None


def redact_address(text: str) -> str:
    """An address, or the path of a file, without a password in it, and what may be the rest of one.

    >>> redact_address("postgresql://ann@host/shop?sslmode=require&password=secret::orders")
    'postgresql://ann@host/shop?sslmode=require'
    >>> redact_address("postgresql://ann:s/ecr@t@host/shop"), redact_address("postgresql://host:5432/shop?user=a@b")
    ('postgresql://ann@host/shop', 'postgresql://host:5432/shop?user=a@b')
    >>> (
    ...     redact_address("postgresql://ann@host/shop;password=secret"),
    ...     redact_address("host=h password=my secret dbname=shop"),
    ... )
    ('postgresql://ann@host/shop', 'host=h password=*** dbname=shop')
    """
    if "://" not in text:
        return _KEYWORD_PASSWORD.sub(r"\1***", text)
    address, table = split_table(text)
    if find_engine_name(text) is None or not is_address(address):
        return _PASSWORD_SETTINGS.sub("", _MALFORMED_USER.sub(r"\1@", text))
    cut = _QUERY_PASSWORD.sub("", _USER_PASSWORD.sub(r"\1@", address))
    return cut if table is None or has_password_setting(address) else f"{cut}::{table}"


def redact_passwords(text: str, user_input: Iterable[str] = ()) -> str:
    """A message without the passwords of addresses in it, those of what was typed and any other.

    >>> redact_passwords("unexpected argument (host=h password=secret dbname=shop)")
    'unexpected argument (host=h password=*** dbname=shop)'

    >>> redact_passwords("cannot read https://ann:s@cret@host/rows.csv")
    'cannot read https://ann@host/rows.csv'
    >>> redact_passwords("no file x://ann:my secret@host", ["x://ann:my secret@host"])
    'no file x://ann@host'
    """
    for word in user_input:
        if (hidden := redact_address(word)) != word:
            text = text.replace(word, hidden)
    text = re.sub(r"[?&;](?:ssl)?password=\S*", "", _USER_PASSWORD.sub(r"\1@", text), flags=re.IGNORECASE)
    return _MESSAGE_PASSWORD.sub(r"\1***", text)


def split_table(text: str) -> tuple[str, str | None]:
    """An address, and the table or query that is named after it, behind two colons."""
    found = _ADDRESS_AND_TABLE.fullmatch(text)
    assert found is not None  # every part of it may be empty
    return found["address"], found["rest"] or None
