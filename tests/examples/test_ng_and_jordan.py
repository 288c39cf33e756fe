"""A small version of Ng and Jordan's experiment runs, and tells what the page tells."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "generative-and-discriminative.md"


@pytest.fixture(scope="module")
def experiment():
    spec = importlib.util.spec_from_file_location("example_ng_and_jordan", ROOT / "examples" / "ng_and_jordan.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_quick_version_runs(experiment, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ng_and_jordan.py", "--quick"])
    experiment.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("| digits 0 or 1 |")]
    assert len({line.count("|") for line in lines[: lines.index("")]}) == 1


@pytest.mark.all_cases
def test_early_naive_bayes_leads_and_later_it_is_passed(experiment):
    curves = experiment.curves_of("digits 2 or 3", draws=12)
    assert curves.mean[0, 0] < curves.mean[1, 0]
    assert curves.mean[1, -1] < curves.mean[0, -1]
    assert curves.crossings()["with a penalty"] < curves.sizes[-1]


def test_the_page_lists_every_table(experiment):
    rows = re.findall(r"^\| ([\w ,-]+?) \| \d+ → \d+ \|", PAGE.read_text(), re.MULTILINE)
    assert rows == list(experiment.TABLES)
    verdicts = re.findall(r"^\| ([\w ,-]+?) \| (?:stays|ahead|behind|even)", PAGE.read_text(), re.MULTILINE)
    assert verdicts == rows
