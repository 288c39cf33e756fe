"""Words of a call: each is a field of ``Settings``, how counts become a model, or of ``Reading``, how a source is read.

A new setting is a field there, and every function that takes these words knows it.

>>> settings, reading = settings_and_reading({"estimate": "map", "na": ["?"]})
>>> settings.estimate, reading.na
('map', ['?'])
>>> settings_and_reading({"estimat": "map"})
Traceback (most recent call last):
    ...
candide.errors.UnknownNameError: unknown option 'estimat'; did you mean 'estimate'? Known: class_prior, estimate, \
priors, select, na, delimiter, header, encoding, errors, table, decimal, day_first, memory_limit, threads
"""

from dataclasses import fields
from typing import Any

from candide.engines.reading import Reading
from candide.errors import unknown
from candide.model.settings import Settings


def settings_and_reading(words: dict[str, Any], usual: Settings | None = None) -> tuple[Settings, Reading]:
    """What the words of a call say; one that is in neither record is an error that names it.

    Settings of which nothing is said are the ``usual`` ones.
    """
    of_settings, of_reading = ({one.name for one in fields(record)} for record in (Settings, Reading))
    for word in words:
        if word not in of_settings | of_reading:
            known = [one.name for record in (Settings, Reading) for one in fields(record)]
            raise unknown("option", word, known)
    said = {word: value for word, value in words.items() if word in of_settings}
    settings = (usual or Settings()).changed(**said)
    return settings, Reading(**{word: value for word, value in words.items() if word in of_reading})
