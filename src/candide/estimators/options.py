"""Words of a call: each is a field of ``Settings``, how counts become a model, or of ``Reading``, how a source is read.

A new setting is a field there, and every function that takes these words knows it.

>>> settings, reading = settings_and_reading({"estimate": "map", "na": ["?"]})
>>> settings.estimate, reading.na
('map', ['?'])
>>> from candide.errors import UnknownNameError
>>> try:
...     settings_and_reading({"event": {"age": "poisson"}}, known=["events", "drop"])
... except UnknownNameError as error:
...     print(str(error)[:46])
unknown option 'event'; did you mean 'events'?
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from candide.engines.reading import Reading
from candide.errors import unknown
from candide.model.settings import Settings


def settings_and_reading(
    words: dict[str, Any], usual: Settings | None = None, known: Iterable[str] = ()
) -> tuple[Settings, Reading]:
    """What the words of a call say; one that is in neither record is an error that names it.

    Settings of which nothing is said are the ``usual`` ones; ``known`` are the words that the call has itself.
    """
    of_settings, of_reading = ({one.name for one in fields(record)} for record in (Settings, Reading))
    for word in words:
        if word not in of_settings | of_reading:
            names = [one.name for record in (Settings, Reading) for one in fields(record)]
            raise unknown("option", word, [*known, *names])
    said = {word: value for word, value in words.items() if word in of_settings}
    settings = (usual or Settings()).changed(**said)
    return settings, Reading(**{word: value for word, value in words.items() if word in of_reading})
