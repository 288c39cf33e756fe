"""The front page says what was measured: each figure is one of benchmarks/RESULTS.md, rounded."""

import re

import pytest
from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "index.md").read_text()
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text()
SPEED = r"\| (?:\w+NB) .*?: fit \| [\d.]+ \| [\d.]+ \| ([\d.]+)x \| \d"


def measured(start, section="", cell=1):
    """A cell of the row of a table that starts so, after some words."""
    rows = [line for line in RESULTS[RESULTS.index(section) :].splitlines() if line.startswith(f"| {start}")]
    return float(rows[0].split("|")[cell + 1].split()[0])


@pytest.mark.parametrize("name", ["BayesClassifier", "HistGradientBoosting", "LogisticRegression"])
def test_the_table_of_classifiers_is_that_of_the_benchmark(name):
    section = "Boosting does not bear the class of two rows that nursery has. Without that table:"
    accuracy, auc, loss, seconds = (measured(name, section, cell) for cell in (1, 2, 3, 7))
    figures = [f"{v:.3f}".lstrip("0") for v in (accuracy, auc, loss)]
    row = next(line for line in PAGE.splitlines() if re.match(rf"\| `?{name}`? \|", line))
    assert [cell.strip() for cell in row.split("|")[2:-1]] == [*figures, f"{seconds:.0f}"]
    assert len(re.findall(r"^\| (?!table|---|mean)\w+ \| \.\d|^\| \w+ \| 1\.000 /", RESULTS, re.MULTILINE)) == 20


def test_the_figures_in_the_text_are_those_of_the_benchmarks():
    texts = {
        f"classify {measured('newsgroups20 | TextNB |', cell=2):.3f} of".replace(
            "0.", "."
        ): "accuracy of weighted words",
        f"machine {measured('newsgroups20 | LinearSVC', cell=2):.3f},".replace("0.", "."): "of LinearSVC",
        f"error is {measured('newsgroups20 | TextNB |', cell=5):.3f}.".replace("0.", "."): "calibration",
        f"fitted in {measured('fit 4,000,000 rows from Parquet'):.1f} s": "fit",
        f"and {measured('peak memory of the process'):.0f} MB": "its memory",
        f"scikit-learn take {measured('the same, against pandas', cell=2):.0f} s": "theirs",
        f"take {measured('10^9 rows'):.0f} s, in {measured('10^9 rows', cell=3):.0f} MB": "scale",
    }
    page = " ".join(PAGE.split())
    for text, what in texts.items():
        assert text in page, what


def test_the_drop_ins_are_as_much_faster_as_documented():
    ratios = [float(v) for v in re.findall(SPEED, RESULTS)]
    assert len(ratios) > 4
    assert f"{int(min(ratios))} to {round(max(ratios))} times faster" in PAGE
