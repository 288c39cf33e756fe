"""Every Python block in README and docs runs, in order within its page, prints what the next block shows, and draws."""

import pytest
from tests.docs.numbers import same
from tests.docs.pages import DOCS, ROOT, hooks

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks_run_and_print_what_is_shown(page):
    text = page.read_text()
    if "-picture." in text:
        pytest.importorskip("matplotlib", reason="pictures need matplotlib").use("Agg")
    printed, absent, before = "", set(), ""
    for piece in hooks.run(text, str(page), draw=False):
        absent.add(piece.absent)
        if piece.kind == "python":
            printed = piece.printed
        elif piece.kind == "shell":
            said, printed = piece.printed, ""
        elif piece.kind == "shown" and (printed or (before == "python" and not piece.absent)):
            assert piece.text.strip() == printed.strip() or same(piece.text, printed)
            printed = ""
        elif piece.kind == "shown" and before == "shell":
            assert excerpt(piece.text, said)
        elif piece.kind == "picture" and not piece.absent:
            assert piece.image
        before = piece.kind
    if absent - {""}:
        pytest.skip(f"blocks that read {sorted(absent - {''})} were passed over; set CANDIDE_DATA to the real data")


def excerpt(shown, printed):
    """Whether every line that is shown was printed, in this order; others may stand between."""
    rest = iter(printed.splitlines())
    return all(any(same(line, found) for found in rest) for line in shown.strip().splitlines())


def test_an_excerpt_has_lines_in_order():
    assert excerpt("a 1.2\nc", "a 1.2\nb\nc\n")
    assert not excerpt("c\na 1.2", "a 1.2\nb\nc\n")
    assert not excerpt("a 1.4", "a 1.2\n")


@pytest.mark.parametrize("language", ["", "text"])
def test_a_wrong_output_is_found(language):
    page = f"```python\nprint(1 + 1)\n```\n```{language}\n3\n```\n"
    code, shown = hooks.run(page, "page")
    assert (code.printed, shown.text) == ("2\n", "3\n")


def test_a_block_that_needs_an_absent_table_is_passed_over():
    needs = "<!-- needs no_such_table.parquet -->\n```python\n1 / 0\n```\n![a plot](x-picture.svg)\n"
    page = f"{needs}\n```python\nprint(2)\n```\n"
    first, picture, second = hooks.run(page, "page")
    assert first.absent == picture.absent == "no_such_table.parquet"
    assert second.printed == "2\n"


def test_commands_that_fail_are_found():
    with pytest.raises(ValueError, match="status 3"):
        list(hooks.run("<!-- runs -->\n```sh\nexit 3\n```\n", "page"))


def test_no_picture_is_kept_in_the_tree():
    assert not [path for path in DOCS.rglob("*") if path.suffix in (".png", ".svg", ".jpg", ".gif", ".pdf")]


@pytest.mark.parametrize("page", sorted((DOCS / "tutorial").glob("*.md")), ids=lambda p: p.name)
def test_a_tutorial_shows_what_its_commands_print(page):
    kinds = [piece.kind for piece in hooks.pieces(page.read_text())]
    assert all(kinds[i + 1 : i + 2] == ["shown"] for i, kind in enumerate(kinds) if kind == "shell")
