"""Shown output against printed output: words as text, numbers as numbers.

Processors differ in the last bit of a sum, and a value such as 9/16 lies halfway between two numbers of three digits: a
number that is shown may differ from the one printed by one unit in its last shown digit, and by nothing else.

>>> same("p = 0.562, so sport", "p = 0.563, so sport"), same("p = 0.562", "p = 0.564"), same("3 rows", "4 rows")
(True, False, False)
>>> same("[0.1, 2.0]", "[0.09999999999999999, 2.0]"), same("1e-05", "3e-05"), same("ant 1.5", "bee 1.5")
(True, False, False)
"""

import doctest
import re

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])", re.IGNORECASE)


def same(shown, printed):
    """Whether two outputs agree: the text between their numbers to the letter, their fractions to the digits shown."""
    if shown == printed:
        return True
    if _spaces(_NUMBER.sub("#", shown)) != _spaces(_NUMBER.sub("#", printed)):
        return False
    pairs = zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True)
    return all(a == b or _near(a, b) for a, b in pairs)


def _near(a, b):
    if _decimals(a) == _decimals(b) == 0 and "e" not in (a + b).lower():
        return False  # whole numbers are counts
    x, y = (float(text.replace(",", "")) for text in (a, b))
    if _decimals(a) != _decimals(b):  # written with all their digits
        return abs(x - y) <= 1e-12 * max(abs(x), abs(y), 1e-3)
    exponent = int(a.lower().partition("e")[2] or 0)
    return abs(x - y) <= 10.0 ** (exponent - min(_decimals(a), 13)) * (1 + 1e-9)


def _decimals(text):
    return len(text.lower().partition("e")[0].partition(".")[2])


def _spaces(text):
    """A number may be a digit longer than the one shown, and move what stands beside it."""
    return re.sub(r"[ \t]+", " ", text).strip()


class Checker(doctest.OutputChecker):
    """Examples in docstrings, compared in the same way."""

    def check_output(self, want, got, optionflags):
        return super().check_output(want, got, optionflags) or same(want, got)
