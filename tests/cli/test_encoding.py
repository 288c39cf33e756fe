"""Names in letters that standard output cannot hold: they are escaped, and no command fails for them."""

import json
import random

import pytest
from click.testing import CliRunner

from candide.cli.group import cli
from candide.errors import InputError

TARGET = "\u540d\u524d"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table and a model whose names, levels and classes are not ASCII, in files whose names are not either."""
    folder, draw = tmp_path_factory.mktemp("letters"), random.Random(0)
    lines = ["gr\u00f6\u00dfe,f\u00e5rbe," + TARGET]
    for _ in range(120):
        colour, label = draw.choice(["r\u00f8d", "gr\u00fcn", "\u201cq\u201d"]), draw.choice(["\u00ff", "\u65e5\u672c"])
        lines.append(f"{draw.gauss(0, 1):.3f},{colour},{label}")
    (folder / "t\u00e4ble.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = ascii_run("fit", folder / "t\u00e4ble.csv", "--target", TARGET, "-o", folder / "m\u00f6del.candide")
    assert done.exit_code == 0, done.output
    return folder


def ascii_run(*arguments):
    return CliRunner(charset="ascii").invoke(cli, list(map(str, arguments)))


COMMANDS = {
    "fit": ["fit", "DATA", "--target", TARGET],
    "naive": ["fit", "DATA", "--target", TARGET, "--model", "naive"],
    "show": ["show", "MODEL"],
    "check": ["check", "DATA", "--target", TARGET],
    "evaluate": ["evaluate", "MODEL", "DATA"],
    "explain": ["explain", "MODEL", "DATA"],
    "drift": ["drift", "MODEL", "DATA"],
    "diff": ["diff", "MODEL", "MODEL"],
    "predict": ["predict", "MODEL", "DATA", "-o", "FOLDER/\u00fc.csv", "--force"],
    "report": ["report", "MODEL", "-o", "FOLDER/\u00fc.html", "--force"],
    "merge": ["merge", "MODEL", "MODEL", "-o", "FOLDER/\u00fc.candide", "--force"],
    "export": ["export", "MODEL", "--to", "js", "-o", "FOLDER/\u00fc.mjs", "--force"],
    "unknown column": ["fit", "DATA", "--target", "\u00e9"],
    "no such file": ["show", "FOLDER/\u00e9.candide"],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_commands(folder, arguments):
    names = {"DATA": folder / "t\u00e4ble.csv", "MODEL": folder / "m\u00f6del.candide"}
    given = [str(names.get(one, one)).replace("FOLDER", str(folder)) for one in arguments]
    done = ascii_run(*given)
    assert done.exception is None or isinstance(done.exception, SystemExit | OSError | InputError), done.exception
    assert not isinstance(done.exception, UnicodeError)
    assert done.stdout_bytes.isascii()


def test_names_are_escaped(folder):
    shown = ascii_run("show", folder / "m\u00f6del.candide").stdout
    assert "\\xf8" in shown
    assert "\\u65e5\\u672c" in shown
    facts = json.loads(ascii_run("show", folder / "m\u00f6del.candide", "--json").stdout)
    assert [row["label"] for row in facts["classes"]] == ["\u00ff", "\u65e5\u672c"]


@pytest.mark.parametrize("to", ["python", "sql"])
def test_programs_are_not_escaped(folder, to):
    """An escaped name would be another name."""
    done = ascii_run(
        "export",
        folder / "m\u00f6del.candide",
        "--to",
        to,
        *(["--table", "t", "--dialect", "duckdb"] if to == "sql" else []),
    )
    if done.exception is None:
        assert done.stdout_bytes.isascii()
        assert to == "python"  # whose data are JSON in ASCII
    else:
        assert isinstance(done.exception, InputError)
        assert (done.exception.value, "PYTHONIOENCODING" in done.exception.remedy) == ("ascii", True)
