"""How a source is read: its options, and addresses of databases, which are shown without their passwords."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from candide.errors import InputError
from candide.model.settings import setting


@dataclass(frozen=True)
class ReadOptions:
    na: str | tuple[str, ...] = setting(
        (), "Text, or a number, that means a missing value (repeatable).", metavar="TEXT", repeated=True
    )
    delimiter: str | None = setting(None, "What separates the fields of a CSV; found out if not given.", metavar="CHAR")
    header: bool | None = setting(None, "Whether a CSV names its columns in its first line.", parse=bool)
    quote: str = setting('"', 'What encloses the fields of a CSV; "" if nothing does.', metavar="CHAR")
    encoding: str | None = setting(
        None, "Of text that is not UTF-8: cp1252, utf-16, shift_jis or any other that Python knows.", metavar="NAME"
    )
    errors: str = setting(
        "strict",
        "What is done with bytes that are not of the encoding: strict, replace or ignore.",
        choices=("strict", "replace", "ignore"),
    )
    table: str | None = setting(
        None, "Which table of a database, or sheet of a workbook; the same as FILE::NAME.", metavar="NAME"
    )
    decimal: str | None = setting(
        None, "What stands before decimals in a CSV, where this is ambiguous (1.234).", choices=(".", ",")
    )
    day_first: bool | None = setting(
        None, "Whether 03/04/2024 is in April, where the dates of a CSV are ambiguous.", parse=bool
    )
    memory_limit: str | None = setting(None, "Most memory the reader may use, such as 2GB.", metavar="SIZE")
    threads: int | None = setting(None, "How many threads the reader may use.", parse=int, least=1)

    def __post_init__(self) -> None:
        if (mark := self.delimiter) is not None and (not isinstance(mark, str) or len(mark) != 1 or mark in "\r\n"):
            remedy = "pass one character (a tab in a shell is $'\\t'), or leave it out to have it found"
            raise InputError(f"delimiter is {mark!r}", value=mark, remedy=remedy)

    @property
    def na_values(self) -> tuple[str, ...]:
        return tuple(map(str, self.na if isinstance(self.na, list | tuple) else (self.na,)))


def make_read_options(model: Any, reading: ReadOptions | None) -> ReadOptions:
    """How a source is read for a model: as given, with the missing values of the model where none are given."""
    reading = reading or ReadOptions()
    return reading if reading.na_values or not model.na else replace(reading, na=model.na)


_ENGINES = {"postgresql": "postgres", "postgres": "postgres", "spark": "spark"}  # scheme -> engine
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_HOST = r"(?:\[[^\]\s]*\]|[^/?#@:,\[\]\s]*)(?::\d*)?"
_FULL_ADDRESS = re.compile(  # in a database, as in a user or a password, @ is %40 and = is %3D
    rf"[A-Za-z][A-Za-z0-9+.-]+://(?:[^/?#@:\s]*(?::[^/@\s]*)?@)?{_HOST}(?:,{_HOST})*(?:/[^/?#@=\s]*)?"
    r"(?:\?[A-Za-z_]+=[^&=\s]*(?:&[A-Za-z_]+=[^&=\s]*)*)?"
)
_PERCENT_ENCODED = re.compile(r"(?:[^%]|%(?!00)[0-9A-Fa-f]{2})*", re.DOTALL)
_USER_PASSWORD = re.compile(r"(?<=://)([^/?#@:\s]*):(?:(?!\d*\?)[^/\s]*@|(?!\d*(?:[/?]|$))\S*@)")
# What follows a password in the settings may be the rest of it, up to a known setting.
_QUERY_PASSWORD = re.compile(r"[?&](?:ssl)?password=.*", re.IGNORECASE | re.DOTALL)
_SETTING_NAMES = (
    r"host(?:addr)?|port|dbname|user|pass\w+|ssl\w*|require\w*|channel_binding|connect_timeout|client_encoding|options|"
    r"\w*application_name|keepalives\w*|tcp_user_timeout|replication|gss\w*|krb\w*|scram\w*|oauth\w*|service\w*|"
    r"target_session_attrs|load_balance_hosts|m\w\w_protocol_version"
)
_TRAILING_SETTINGS = re.compile(rf"(?:&(?:{_SETTING_NAMES})=[^&]*)*")
# In a malformed address everything from the first colon to the last @ may be the password, and all of the settings.
_MALFORMED_USER = re.compile(r"(?<=://)([^/?#@:]*):.*@", re.DOTALL)
_PASSWORD_SETTINGS = re.compile(r"\?.*?(?:pass|%).*|\W?\b\w*password\s*=.*", re.DOTALL | re.IGNORECASE)
# In ``host=h password=secret dbname=shop`` a password ends before a known setting; in a message, at a space.
_KEYWORD_PASSWORD = re.compile(rf"(\b\w*password\s*=)(?:(?!\s(?:{_SETTING_NAMES})\s*=).)*", re.DOTALL | re.IGNORECASE)
_MESSAGE_PASSWORD = re.compile(r"(\b\w*password\s*=)\s*(?:'(?:[^'\\]|\\.)*'|[^\s)]*)", re.IGNORECASE)
_ADDRESS_AND_TABLE = re.compile(
    r"(?P<address>(?:[^/?#@\s]*//)?(?:[^/@\s]*@)?(?:\[[^\]]*\]|(?!::).)*)(?:::(?P<rest>.*))?", re.DOTALL
)


def find_engine_name(data: Any) -> str | None:
    """The name of the engine for an address; None for anything else."""
    match = _SCHEME.match(data) if isinstance(data, str) else None
    return _ENGINES.get(match[1].lower()) if match else None


def is_address(text: str) -> bool:
    """Whether a server accepts a text as an address; an error message on another might show parts of the password."""
    match = _QUERY_PASSWORD.search(text)
    _, ampersand, rest = match[0][1:].partition("&") if match else ("", "", "")
    has_valid_end = _TRAILING_SETTINGS.fullmatch(ampersand + rest)
    return bool(_FULL_ADDRESS.fullmatch(text) and _PERCENT_ENCODED.fullmatch(text) and has_valid_end)


def has_password_setting(address: str) -> bool:
    """Whether the settings of an address hold a password; what follows may be the rest of it."""
    return _QUERY_PASSWORD.search(address) is not None


def redact_address(text: str) -> str:
    """An address, or the path of a file, without a password and what may be the rest of one."""
    if "://" not in text:
        return _KEYWORD_PASSWORD.sub(r"\1***", text)
    address, table = split_table(text)
    if find_engine_name(text) is None or not is_address(address):
        return _PASSWORD_SETTINGS.sub("", _MALFORMED_USER.sub(r"\1@", text))
    redacted = _QUERY_PASSWORD.sub("", _USER_PASSWORD.sub(r"\1@", address))
    return redacted if table is None or has_password_setting(address) else f"{redacted}::{table}"


def redact_passwords(text: str, user_input: Iterable[str] = ()) -> str:
    """A message without the passwords of addresses, those that the user typed and any other."""
    for word in user_input:
        if (redacted := redact_address(word)) != word:
            text = text.replace(word, redacted)
    text = re.sub(r"[?&;](?:ssl)?password=\S*", "", _USER_PASSWORD.sub(r"\1@", text), flags=re.IGNORECASE)
    return _MESSAGE_PASSWORD.sub(r"\1***", text)


def split_table(text: str) -> tuple[str, str | None]:
    """An address, and the table or query after its two colons."""
    match = _ADDRESS_AND_TABLE.fullmatch(text)
    assert match is not None  # every part of it may be empty
    return match["address"], match["rest"] or None
