r"""Check that a regular expression for words cannot take very long: ``(\w+)+\d`` needs 2**n steps on n letters.

A model file may come from anywhere, so a pattern that could take more than the square of a document's length is
refused. Two rules hold for those that pass: there is only one way to divide characters among the rounds of a repeated
part, and no two repeated parts can divide a run of characters between them where what comes after may fail. A set of
characters is a whole number that has a bit for each of them.
"""

import re
import re._compiler  # type: ignore[import-not-found]
import re._constants as sre  # type: ignore[import-not-found]
import re._parser  # type: ignore[import-not-found]
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from itertools import chain, combinations, product
from operator import or_
from typing import Any

from candide.errors import InputError

_MAX_PATHS = 1000  # ways through what is not repeated
_MAX_POSITIONS = 100  # of characters in a repeated part
_ALL_CHARACTERS = (1 << (sys.maxunicode + 1)) - 1
_REPEAT_OPS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_SINGLE_CHARACTER_OPS = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
_REMEDY = (
    r"let each repeated part end where a character comes that it cannot take, as in [^\s@]+@[^\s@]+ or \w+(?:-\w+)*, "
    "and repeat no part that ends with a repeated part"
)


@lru_cache(maxsize=64)
def check_pattern(pattern: str) -> None:
    """Refuse a pattern that could take longer than the square of a document's length, or that cannot be analysed."""
    parsed = re._parser.parse(pattern)
    try:
        whole = _follow(parsed, parsed.state.flags, _END)
        slow = whole.degree(_ALL_CHARACTERS) > 1 or whole.n_paths > max(_MAX_PATHS, len(pattern))
    except _UnsafePatternError as error:
        raise InputError(f"pattern {pattern!r}: {error}", value=pattern, remedy=_REMEDY) from None
    except RecursionError:
        raise InputError(f"pattern {pattern!r} is nested too deeply", value=pattern, remedy=_REMEDY) from None
    if slow:
        what = f"pattern {pattern!r} could take very long: parts of it can divide the same characters in many ways"
        raise InputError(what, value=pattern, remedy=_REMEDY)


class _UnsafePatternError(Exception):
    """A part that is not safe, or that cannot be analysed."""


@dataclass(frozen=True)
class _Remainder:
    """What is known of the rest of a pattern, from a position on."""

    first: int  # the characters with which it can begin
    can_fail: bool  # whether it can fail at all
    n_paths: int  # through it, without those of repeated parts
    degree: Callable[[int], int]  # steps before it fails, as a power of the length of a run of some characters


_END = _Remainder(0, False, 1, lambda run: 0)


def _follow(items: Iterable[Any], flags: int, rest: _Remainder) -> _Remainder:
    for op, value in reversed(list(items)):
        rest = _prepend_item(op, value, flags, rest)
    return rest


def _prepend_item(op: Any, value: Any, flags: int, rest: _Remainder) -> _Remainder:
    if op in _SINGLE_CHARACTER_OPS:
        chars = _chars(op, value, flags)
        return _Remainder(chars, True, rest.n_paths, lambda run: rest.degree(run) if chars & run else 0)
    if op is sre.AT:
        return _Remainder(rest.first, True, rest.n_paths, rest.degree)
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        if _has_repeats(value[1]):
            raise _UnsafePatternError("it looks ahead or behind over a repeated part")
        seen = _follow(value[1], flags, _END)
        return _Remainder(rest.first, True, rest.n_paths * seen.n_paths, rest.degree)
    if op is sre.SUBPATTERN:
        return _follow(value[3], (flags | value[1]) & ~value[2], rest)
    if op is sre.ATOMIC_GROUP:
        return _follow(value, flags, rest)
    if op is sre.BRANCH:
        return _combine_branches([_follow(items, flags, rest) for items in value[1]])
    if op in _REPEAT_OPS:
        low, high, items = value
        return _prepend_repeat(low, high, items, flags, rest)
    raise _UnsafePatternError("it has a back reference, or a condition whose cost is unknown")


def _combine_branches(branches: list[_Remainder]) -> _Remainder:
    first, is_disjoint = 0, True
    for branch in branches:
        first, is_disjoint = first | branch.first, is_disjoint and not first & branch.first
    n_paths = (max if is_disjoint else sum)(branch.n_paths for branch in branches)
    can_fail = all(branch.can_fail for branch in branches)
    return _Remainder(first, can_fail, n_paths, cache(lambda run: max(branch.degree(run) for branch in branches)))


def _prepend_repeat(low: int, high: int, items: Any, flags: int, rest: _Remainder) -> _Remainder:
    if high <= 1:
        if low == high:
            return _follow(items, flags, rest) if low else rest
        taken = _follow(items, flags, rest)
        return _combine_branches([taken, rest]) if rest.can_fail else replace(taken, can_fail=False)
    part = _Part(items, flags)
    if low == high and not _has_repeats(items):
        return _follow(items, flags, rest)

    def degree(run: int) -> int:
        if not part.first & run:  # the part is passed by, or fails at once
            return 0 if low else rest.degree(run)
        if not rest.can_fail:
            return max(int(_has_repeats(items)), rest.degree(run))
        return max(1 + rest.degree(part.chars & run), rest.degree(run))

    return _Remainder(part.first | (0 if low else rest.first), low > 0 or rest.can_fail, rest.n_paths, cache(degree))


class _Part:
    """A repeated part, as the positions of its characters and which may follow which (Glushkov 1961).

    It is refused where the same characters lead through it in two ways: each round would double the work.
    """

    def __init__(self, items: Any, flags: int):
        self.at: list[int] = []  # the characters at each position
        self.next: list[list[int]] = []  # the positions that may follow each
        first, last, empty = self._sequence(items, flags)
        self._allow_repeat(first, last, empty)
        self.first, self.chars = reduce(or_, (self.at[place] for place in first)), reduce(or_, self.at)
        if self._is_ambiguous():
            raise _UnsafePatternError("it could take very long: what is repeated can be divided in several ways")

    def _sequence(self, items: Any, flags: int) -> tuple[list[int], list[int], int]:
        """First and last positions, and in how many ways it may be empty."""
        first, last, empty = list[int](), list[int](), 1
        for op, value in items:
            starts, ends, ways = self._item(op, value, flags)
            self._join(last, starts)
            first = first + starts if empty else first
            last = ends + (last if ways else [])
            empty *= ways
            if ways > 1:
                raise _UnsafePatternError("within a repeated part something may be empty in two ways")
        return first, last, empty

    def _item(self, op: Any, value: Any, flags: int) -> tuple[list[int], list[int], int]:
        if op in _SINGLE_CHARACTER_OPS:
            self.at.append(_chars(op, value, flags))
            self.next.append([])
            return [len(self.at) - 1], [len(self.at) - 1], 0
        if op is sre.SUBPATTERN:
            return self._sequence(value[3], (flags | value[1]) & ~value[2])
        if op is sre.ATOMIC_GROUP:
            return self._sequence(value, flags)
        if op is sre.BRANCH:
            firsts, lasts, empties = zip(*(self._sequence(items, flags) for items in value[1]), strict=True)
            return list(chain(*firsts)), list(chain(*lasts)), sum(empties)
        if op in _REPEAT_OPS and value[1] > 0:
            first, last, empty = self._sequence(value[2], flags)
            if value[1] > 1:
                self._allow_repeat(first, last, empty)
            return first, last, empty + (value[0] == 0)
        _prepend_item(op, value, flags, _END)  # what has no width, if it can be analysed
        return [], [], 1

    def _allow_repeat(self, first: list[int], last: list[int], empty: int) -> None:
        if empty:
            raise _UnsafePatternError("a part is repeated that may be empty")
        self._join(last, first)

    def _join(self, last: list[int], first: list[int]) -> None:
        if len(self.at) > _MAX_POSITIONS:
            raise _UnsafePatternError("a repeated part is too long")
        for place in last:
            self.next[place] += first

    def _is_ambiguous(self) -> bool:
        """Whether two ways through the same characters diverge and join again (Weber and Seidl 1991)."""
        waiting = [pair for following in self.next for pair in combinations(following, 2)]
        visited = set[tuple[int, int]]()
        while waiting:
            a, b = waiting.pop()
            if self.at[a] & self.at[b] and (a, b) not in visited:
                if a == b:
                    return True
                visited.add((a, b))
                waiting += product(self.next[a], self.next[b])
        return False


def _has_repeats(items: Any) -> bool:
    for op, value in items:
        inner = value[1] if op is sre.BRANCH else [value] if op is sre.ATOMIC_GROUP else []
        if op in _REPEAT_OPS or op in (sre.SUBPATTERN, sre.ASSERT, sre.ASSERT_NOT):
            inner = [value[-1]]
        if (op in _REPEAT_OPS and value[1] > 1) or any(map(_has_repeats, inner)):
            return True
    return False


def _chars(op: Any, value: Any, flags: int) -> int:
    return _scan_characters(op, tuple(value) if isinstance(value, list) else value, flags)


@lru_cache(maxsize=256)
def _scan_characters(op: Any, value: Any, flags: int) -> int:
    """The same by Python's engine, which knows the flags and Unicode, on a text of all characters."""
    if op is sre.LITERAL and not flags & re.IGNORECASE:
        return 1 << value
    state = re._parser.State()
    state.flags = flags
    item = re._parser.SubPattern(state, [(op, list(value) if isinstance(value, tuple) else value)])
    run = re._parser.SubPattern(state, [(sre.MAX_REPEAT, (1, sre.MAXREPEAT, item))])
    out = 0
    for match in re._compiler.compile(run, flags).finditer(_all_characters_text()):
        out |= ((1 << (match.end() - match.start())) - 1) << match.start()
    return out


@cache
def _all_characters_text() -> str:
    return "".join(map(chr, range(sys.maxunicode + 1)))
