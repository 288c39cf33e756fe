"""Words of a call: each is a field of ``Settings``, how counts become a model, or of ``Reading``, how a source is read.

A new setting is a field there, and every function that takes these words knows it.

>>> settings, reading = split_options({"estimate": "map", "na": ["?"]})
>>> settings.estimate, reading.na
('map', ['?'])
>>> from candide.errors import UnknownNameError
>>> try:
...     split_options({"event": {"age": "poisson"}}, other_names=["events", "drop"])
... except UnknownNameError as error:
...     print(str(error)[:46])
unknown option 'event'; did you mean 'events'?
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from candide.engines.reading import ReadOptions
from candide.errors import unknown_name_error
from candide.model.settings import Settings


def split_options(
    options: dict[str, Any], defaults: Settings | None = None, other_names: Iterable[str] = ()
) -> tuple[Settings, ReadOptions]:
    """What the words of a call say; one that is in neither record is an error that names it.

    Settings of which nothing is said are the ``usual`` ones; ``known`` are the words that the call has itself.
    """
    of_settings, of_reading = ({one.name for one in fields(record)} for record in (Settings, ReadOptions))
    for word in options:
        if word not in of_settings | of_reading:
            names = [one.name for record in (Settings, ReadOptions) for one in fields(record)]
            raise unknown_name_error("option", word, [*other_names, *names])
    said = {word: value for word, value in options.items() if word in of_settings}
    settings = (defaults or Settings()).with_settings(**said)
    return settings, ReadOptions(**{word: value for word, value in options.items() if word in of_reading})
