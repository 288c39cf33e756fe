"""Summary: a plain record of what was found. All mathematics is done while it is made; renderers show it.

Printed, it is the text that the command line shows; ``to_dict`` has what ``--json`` prints.
"""

from typing import Any


class Summary:
    """What every record of a report is."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The record as facts for a program."""
        from candide.report import json

        return json.to_facts(self)

    def __str__(self) -> str:
        from candide.report import terminal

        return terminal.render_text(self)

    __repr__ = __str__
