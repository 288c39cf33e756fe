"""No pattern that passes can take very long: its steps are counted by an engine that tries as Python's does."""

import random
import re._constants as sre
import re._parser

import pytest

from candide.encoding.patterns import check_pattern
from candide.encoding.tokens import Tokens
from candide.errors import InputError

FINE = [
    r"(?u)\b\w\w+\b",
    r"\S+",
    r"[A-Za-z]+(?:'[a-z]+)?",
    r"\b\w+(?:[-']\w+)*\b",
    r"\w+|[^\w\s]",
    r"<[^>]*>|https?://\S+|[#@]\w+|\w+",
    r"\$?\d+(?:,\d{3})*(?:\.\d+)?%?",
    r"(?:[A-Z]\.)+|\d{4}-\d{2}-\d{2}",
    r"(?<!\w)[A-Z]{2,}(?!\w)",
    r"(?:foo|bar|baz)+",
    r"(?i)[a-z]+\d",
    r"[^\s@]+@[^\s@]+",
    "|".join(f"word{i}" for i in range(300)),
]
SLOW = [
    r"(\w+)+\d",
    r"(?:\w+\s?)*$",
    r"(?:a|a)*b",
    r"(?:a|ab|b)+c",
    r"(x+x+)+y",
    r"(?:a?b?)*c",
    r"(?:(?:a*)?b)+c",
    r"(?:(?:(?:){9999}){9999}){9999}",
    r"(?:\w{1,20}){1,20}\d",
    r"(?:[\u0430-\u044f]x|[\u044f-\u0450]x)*\d",
    r"(?i:kx|Kx)+\d",
    r"(?s).*.*x",
    r"\w*\d*\w*-",
    r"[a-z]+\d*[a-z]+$",
    r"(?:a|a|aa)" * 20 + "b",
    "a?" * 30 + "a" * 30 + "b",
    r"(.)\1+",
    r"(?=\w+x)\w",
    "(?:" * 400 + "a" + ")?" * 400,
]


@pytest.mark.parametrize("pattern", FINE)
def test_patterns_that_people_write_pass(pattern):
    check_pattern(pattern)


@pytest.mark.parametrize("pattern", SLOW)
def test_slow_patterns_are_refused(pattern):
    with pytest.raises(InputError) as error:
        Tokens(pattern=pattern)
    assert error.value.value == pattern
    assert error.value.remedy


class Steps:
    """An engine that tries one way after the other, and counts the characters that it looks at."""

    def __init__(self, text: str, most: int):
        self.text, self.left = text, most

    def findall(self, items) -> None:
        start = 0
        while start <= len(self.text):
            start = max(next(self.ends(list(items), start), start), start + 1)

    def ends(self, items, at):
        if not items:
            yield at
            return
        (op, value), rest = items[0], items[1:]
        if op is sre.BRANCH:
            for some in value[1]:
                yield from self.ends([*some, *rest], at)
        elif op is sre.SUBPATTERN:
            yield from self.ends([*value[3], *rest], at)
        elif op is sre.MAX_REPEAT:
            low, high, body = value
            if high > 0:
                fewer = (op, (max(low - 1, 0), high - (high is not sre.MAXREPEAT), body))
                for end in self.ends(list(body), at):
                    if end > at or low:
                        yield from self.ends([fewer, *rest], end)
            if not low:
                yield from self.ends(rest, at)
        else:
            self.left -= 1
            assert self.left > 0
            if at < len(self.text) and takes(op, value, self.text[at]):
                yield from self.ends(rest, at + 1)


def takes(op, value, char: str) -> bool:
    return ord(char) in ([value] if op is sre.LITERAL else [code for _, code in value])


def drawn(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["a", "b", "-", "[ab]", "ab"])
    kind = rng.choice(["sequence", "sequence", "either", "repeat", "repeat"])
    if kind == "repeat":
        return f"(?:{drawn(rng, depth - 1)}){rng.choice(['?', '*', '+', '{2}', '{1,3}'])}"
    a, b = drawn(rng, depth - 1), drawn(rng, depth - 1)
    return a + b if kind == "sequence" else f"(?:{a}|{b})"


def test_what_passes_takes_no_more_than_the_square_of_the_length():
    rng, n, passed, refused = random.Random(0), 18, 0, 0
    texts = ["a" * n, "ab" * (n // 2), "a" * (n - 1) + "-", "aab" * (n // 3), "a-" * (n // 2), "ab-" * (n // 3)]
    for _ in range(700):
        pattern = drawn(rng, 4) + rng.choice(["", "b", "-", "x"])
        try:
            check_pattern(pattern)
        except InputError:
            refused += 1
            continue
        passed += 1
        for text in texts:
            Steps(text, 3 * len(pattern) * n**2).findall(re._parser.parse(pattern))
    assert passed > 100
    assert refused > 100


@pytest.mark.parametrize(
    ("pattern", "text"), [("(?:a|b|ab)*x", "ab" * 12), ("(?:a+)+x", "a" * 24), ("a*a*a*a*x", "a" * 24)]
)
def test_the_steps_of_slow_patterns_are_noticed(pattern, text):
    with pytest.raises(AssertionError):
        Steps(text, 3 * len(pattern) * 24**2).findall(re._parser.parse(pattern))
