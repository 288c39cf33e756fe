"""How docstrings become pages: an example outside an *Examples* section is shown as code, as one inside it is.

A parameter described in one line, ``name : what it is``, has that as its description, not as its type. A record's
fields are shown as the signature that makes it, and so are the fields that an estimator takes from a settings record.
A module's own docstring is for readers of the source; its page has an introduction of its own.
"""

import importlib
import inspect
import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?m)^(?:>>> .*\n?)(?:(?!\s*$).*\n?)*")


_IN_ONE_LINE = re.compile(r"(?m)^(\w[\w, ]*?) : (\S.*)\n(?![ \t]+\S)")


class SetExamples(griffe.Extension):
    """A griffe extension, named in ``mkdocs.yml``."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.is_function and any(
            str(d.value).startswith("takes_settings") for d in obj.decorators
        ):
            obj.parameters = _parameters(obj)
        if obj.docstring is None:
            return
        if obj.is_module:
            obj.docstring = None
            return
        text = described(obj.docstring.value)
        plain, section, rest = text.partition("Examples\n--------")
        obj.docstring.value = _signature(obj) + _EXAMPLE.sub(_fenced, plain) + section + rest


def described(docstring: str) -> str:
    """A docstring whose parameters all have a description: what stands beside a name that has nothing below it."""
    return _IN_ONE_LINE.sub(r"\1\n    \2\n", f"{docstring}\n").removesuffix("\n")


def _fenced(match: re.Match[str]) -> str:
    return f"```pycon\n{match[0].rstrip()}\n```\n"


def _parameters(init: Any) -> griffe.Parameters:
    """The parameters of an estimator with the fields of its settings, which only the running program knows."""
    cls = getattr(importlib.import_module(init.module.canonical_path), init.parent.name)
    kinds = {kind.name: griffe.ParameterKind[kind.name.lower()] for kind in inspect._ParameterKind}
    return griffe.Parameters(
        *(
            griffe.Parameter(
                parameter.name,
                annotation="Any",
                kind=kinds[parameter.kind.name],
                default=None if parameter.default is parameter.empty else repr(parameter.default),
            )
            for parameter in inspect.signature(cls.__init__).parameters.values()
        )
    )


def _signature(obj: Any) -> str:
    """How a frozen value is made, from its fields: their decorator is Candide's own, which griffe does not know."""
    if not obj.is_class or not any(str(d.value).startswith("dataclass") for d in obj.decorators):
        return ""
    fields = [
        m for m in obj.members.values() if m.is_attribute and "instance-attribute" in m.labels
    ]
    fields = [m for m in fields if m.annotation is not None and not m.name.startswith("_")]
    if not fields:
        return ""
    shown = ", ".join(
        m.name if m.value is None else f"{m.name}={_default(str(m.value))}" for m in fields
    )
    return f"```python\n{obj.name}({shown})\n```\n\n"


def _default(text: str) -> str:
    """What a field is if nothing is said: the default within ``field(default=...)``."""
    found = re.fullmatch(r"field\(default=(.*?)(?:, \w+=.*)?\)", text)
    return found[1] if found else text
