"""Frozen dataclasses behave as the standard library's do."""

import copy
import dataclasses
import inspect
import pickle

import pytest

from candide import frozen


@frozen.dataclass(frozen=True)
class Mine:
    a: float
    b: tuple = ()
    c: dict = dataclasses.field(default_factory=dict, compare=False)
    d: list = dataclasses.field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "a", float(self.a))


@frozen.dataclass(frozen=True)
class MineMore(Mine):
    e: int = 7


@dataclasses.dataclass(frozen=True)
class TheirsOfMine(Mine):
    e: int = 7


@dataclasses.dataclass(frozen=True)
class Theirs:
    a: float
    b: tuple = ()
    c: dict = dataclasses.field(default_factory=dict, compare=False)
    d: list = dataclasses.field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "a", float(self.a))


@frozen.dataclass(frozen=True)
class MineOfTheirs(Theirs):
    e: int = 7


@frozen.dataclass(frozen=True, eq=False)
class Apart:
    a: float


@pytest.mark.parametrize("args", [((1,), {}), ((1, (2,)), {}), ((), {"a": 1, "c": {"x": 1}}), ((1, (), {"y": 2}), {})])
def test_made_and_shown_as_the_librarys(args):
    mine, theirs = Mine(*args[0], **args[1]), Theirs(*args[0], **args[1])
    assert repr(mine).removeprefix("Mine") == repr(theirs).removeprefix("Theirs")
    assert dataclasses.asdict(mine) == dataclasses.asdict(theirs)
    assert hash(mine) == hash(theirs)
    assert mine == Mine(*args[0], **args[1])
    assert mine != theirs
    assert mine.d is not Mine(*args[0], **args[1]).d


@pytest.mark.parametrize(
    "args", [((), {}), ((1, (), {}, 4), {}), ((1,), {"a": 2}), ((1,), {"d": []}), ((1,), {"z": 2})]
)
def test_what_does_not_fit_is_a_type_error(args):
    for cls in (Mine, Theirs):
        with pytest.raises(TypeError):
            cls(*args[0], **args[1])


@pytest.mark.parametrize("cls", [MineMore, TheirsOfMine, MineOfTheirs])
def test_either_may_inherit_from_the_other(cls):
    value = cls(1, e=2)
    assert [f.name for f in dataclasses.fields(cls)] == ["a", "b", "c", "d", "e"]
    assert (value.a, value.e, value.b) == (1.0, 2, ())
    assert value == cls(1, (), {}, 2)
    assert dataclasses.replace(value, e=3) == cls(1, e=3) != value
    with pytest.raises(dataclasses.FrozenInstanceError, match="'e'"):
        value.e = 3
    with pytest.raises(dataclasses.FrozenInstanceError, match="'e'"):
        del value.e
    assert list(inspect.signature(cls).parameters) == ["a", "b", "c", "e"]
    assert inspect.signature(cls).parameters["e"].default == 7


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_copies_are_equal(again):
    value = MineMore(1, (2,), {"x": [3]})
    assert again(value) == value
    assert again(value).c == value.c


def test_without_equality_a_value_is_itself():
    value = Apart(1)
    assert value == value
    assert value != Apart(1)
    assert len({value, Apart(1)}) == 2


def test_others_are_refused():
    with pytest.raises(TypeError, match="frozen"):
        frozen.dataclass(frozen=False)
