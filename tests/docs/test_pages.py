"""Every Python block in README and docs runs, in order within its page, and prints what the next block shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks_run_and_print_what_is_shown(page):
    names: dict = {}
    printed = None
    for language, code in BLOCK.findall(page.read_text()):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, str(page), "exec"), names)
            printed = out.getvalue()
        elif language == "" and printed:
            assert code.strip() == printed.strip()
            printed = None
