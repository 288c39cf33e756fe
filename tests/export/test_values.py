"""Values and texts are read alike by Candide and by both scorers, however they are written."""

import datetime as dt
import json
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.export.scorers import node

import candide.export.python_js
from candide.data.labels import Labels
from candide.data.text_formats import parse_plain_number
from candide.encoding.tokens import Tokens, tokenize
from candide.export.parameters import _level
from candide.export.python_js.reads import count_tokens as counted
from candide.export.python_js.reads import split_tokens
from candide.export.python_js.values import LevelLookup

HERE = Path(candide.export.python_js.__file__).parent
SETS = [
    (0, 1, 2.5, 1e21, -0.1),
    ("1", "1.0", "2.50", "x", "TRUE", "1e-7"),
    ("yes", "no", "true", "0"),
    (False, True),
    (dt.date(2024, 2, 29), dt.date(1999, 12, 31), dt.date(1969, 7, 20)),
    (dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 15, 250000)),
    (dt.time(0, 0), dt.time(12, 30), dt.timedelta(days=1, hours=2), dt.timedelta(days=-1)),
    ("2024-02-29", "12:30", "1 days 02:00:00", "P1DT2H"),
    (1, "a", dt.date(2024, 2, 29)),
    ("9007199254740992", "9007199254740993", "x"),
]
WRITTEN = [
    "0", "1", "1.0", "01", " 1 ", "+1", "1.", ".5", "-.1", "-0.1", "2.5", "2.50", "1e21", "1e-7", "1E-07", "0x1", "1_0",
    "\u0661", "true", "TRUE", "True", "false", "yes", "x", "X", "nan", "inf", "-", "2024-02-29", "2024-02-30",
    "2024-2-29", "2024-02-29T00:00", "2024-02-29 12:30:15.25", "2024-02-29T12:30:15.250000Z",
    "2024-02-29 14:30:15.25+02:00",
    "2024-02-29T12:30:15.25 UTC", "2024-02-29 24:00", "1999-12-31 23:59:59", "1969-07-20", "1969-07-20 20:17", "00:00",
    "12:30", "12:30:00", "24:00", "12:60", "1 day 02:00:00", "1 days 02:00:00", "1 day, 2:00:00", "P1DT2H", "-P1D",
    "PT26H", "-1 days", "-1 days +00:00:00", "26:00:00", "-24:00:00", "P", "", "1 day",
    "+9007199254740993", "9007199254740993", "9007199254740992.0",
]  # fmt: skip
TYPED = [0, 1, 2, 2.5, 1.5, -0.1, 1e21, 1e-7, True, False]


@pytest.mark.parametrize("levels", SETS, ids=str)
def test_levels_are_found_the_same(levels, tmp_path):
    known = Labels.from_values(list(levels))
    plain, values = [_level(value) for value in known.values], [v for v in WRITTEN if v] + TYPED
    expected = [-2 if (at := known.find_code(value)) is None else at for value in values]
    assert [LevelLookup(plain).find(value) for value in values] == expected
    asked = "const found = new Levels(input.levels); return input.values.map((value) => found.place(value));"
    assert in_node("values", "Levels", asked, {"levels": plain, "values": values}, tmp_path) == expected


def test_only_the_digits_of_ascii_are_read(tmp_path):
    """As plain_number reads them: those of other scripts are letters, and no-break spaces are white space."""
    digits = [letter for letter in map(chr, range(sys.maxunicode)) if unicodedata.category(letter) == "Nd"]
    texts = ["".join(digits[i : i + 10]) for i in range(0, len(digits), 10)]
    texts += ["1_000", "5\u00a0", "\u202f5", "1__0", "_1", "5\u3000", "5\x1f", "\t-2.5e1\n", "0x10", "1d"]
    refused = "try { return numberOf({ name: 'x', kind: 'number' }, text); } catch { return null; }"
    asked = f"return input.map((text) => {{ {refused} }});"
    assert in_node("values", "numberOf", asked, texts, tmp_path) == [_number_or_none(text) for text in texts]


def _number_or_none(text):
    try:
        return parse_plain_number(text)
    except ValueError:
        return None


def in_node(module, name, code, given, folder):
    """What some JavaScript makes of a value with a function of the scorer."""
    for path in HERE.glob("*.js"):
        (folder / f"{path.stem}.mjs").write_text(path.read_text("utf-8").replace('.js";', '.mjs";'), "utf-8")
    (folder / "ask.mjs").write_text(
        f'import {{ readFileSync }} from "node:fs";\nimport {{ {name} }} from "./{module}.mjs";\n'
        'const input = JSON.parse(readFileSync(0, "utf8"));\n'
        f"process.stdout.write(JSON.stringify((() => {{ {code} }})()));\n"
    )
    asked = [node(), folder / "ask.mjs"]
    done = subprocess.run(asked, input=json.dumps(given), capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


# Letters of many scripts, marks, figures, spaces, signs and halves of pairs; none that a newer Unicode has changed.
LETTERS = (
    "aZ_09 \u01c5ßİ\u0131\u03a3\u03c3\u03c2Àé\u0301\u0416日本ไทย한\u0661२½²Ⅻ\U0001d49c𐐀🙂👩\u200d🚀-'.#\ud83d"
    "\t\n\x0b\x1c\x1f\x85\xa0\u1680\u2003\u2028\u3000\ufeff\u200b"
)
READS = [
    Tokens(),
    Tokens(ngrams=(1, 3), stop_words=("aa", "σς"), max_token_length=3, lowercase=False),
    Tokens(analyzer="char", ngrams=(1, 3)),
    Tokens(analyzer="char_wb", ngrams=(2, 4)),
    Tokens(bits=6),
    Tokens(bits=5, signed=True, ngrams=(1, 2)),
]


@given(st.text(st.sampled_from(LETTERS), max_size=40))
def test_python_finds_the_same_terms(text):
    for tokens in READS:
        assert split_tokens(tokens.to_export_dict(), text) == tokenize(text, tokens)


@pytest.mark.parametrize("tokens", READS, ids=str)
def test_javascript_finds_the_same_terms(tokens, tmp_path):
    rng = random.Random(0)
    texts = ["".join(rng.choices(LETTERS, k=rng.randrange(40))) for _ in range(2000)]
    code = """
        const read = { ...input.read, stop: new Set(input.read.stop_words) };
        return input.texts.map((text) => Object.fromEntries(countTokens(read, text)));
    """
    found = in_node("reads", "countTokens", code, {"read": tokens.to_export_dict(), "texts": texts}, tmp_path)
    assert found == [dict(counted(tokens.to_export_dict(), text)) for text in texts]
