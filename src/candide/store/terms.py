"""Terms in files: the counts of an open vocabulary.

Offsets and places go to compiled loops, so all of them are checked before they are used. The counts of a file that is
mapped are checked when the first of them is used, so that loading reads none of them.
"""

from numpy.typing import NDArray

from candide.errors import InputError, ModelFileError
from candide.store.plans import LARGEST, Taken
from candide.tally import keys
from candide.tally.terms import STATE, Terms, rising


def unpack_counts(arrays: Taken, prefix: str, n_classes: int) -> Terms:
    """A tally with an open vocabulary."""
    state = {name: array for name in STATE if (array := arrays.get(prefix + name)) is not None}
    if len(state) < len(STATE):
        raise ModelFileError("an array of its terms is missing")
    if state["n"].shape != (n_classes, 1) or state["length"].shape != (n_classes, 1):
        raise ModelFileError("its terms were counted for another number of classes")
    return checked_counts(state) if arrays.checked else Terms.later(state, checked_counts)


def checked_counts(state: dict[str, NDArray]) -> Terms:
    """The tally of some arrays, if they are one."""
    try:
        tally = Terms.from_arrays(state)
    except (InputError, ValueError, IndexError) as error:
        raise ModelFileError(str(error)) from None
    weights = (tally.n, tally.length, tally.total, tally.documents)
    if any(a.size and (a.min() < -LARGEST or a.max() > LARGEST) for a in weights):
        raise ModelFileError("a weight of its terms is too large to be added")
    if not keys.ascending(tally.letters, tally.starts) or not rising(tally.classes, tally.word):
        raise ModelFileError("its terms are not in ascending order, each once")
    return tally
