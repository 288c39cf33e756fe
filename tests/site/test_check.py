"""What the check of the built site would find."""

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("site_check", Path(__file__).with_name("check.py"))
check = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example.org/mathjax.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//fonts.example.org/css?family=Roboto">'),
        ("a.html", '<img alt="" src="https://example.org/badge.svg">'),
        ("a.css", "@import url('https://fonts.example.org/css');"),
        ("a.css", "body { background: url(https://example.org/paper.png) }"),
    ],
)
def test_what_a_browser_would_fetch_is_found(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert len(check.fetched_from_elsewhere(tmp_path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://example.org">a link that a reader follows</a>',
        '<script src="assets/bundle.js"></script>',
        '<link rel="canonical" href="https://example.org/">',
        '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
    ],
)
def test_links_and_own_files_make_no_difference(tmp_path, text):
    (tmp_path / "a.html").write_text(text)
    assert check.fetched_from_elsewhere(tmp_path) == []


def test_search_needs_no_server_and_no_network():
    """A browser starts no worker from the disk: the index comes as a script, and a frame of our own does the work."""
    root = Path(__file__).resolve().parents[2]
    site = (root / "mkdocs.yml").read_text()
    assert "  - offline\n" in site
    [shim] = [line for line in site.splitlines() if "polyfills" in line]
    assert "assets/iframe-worker.js" in shim
    assert (root / "docs" / "assets" / "iframe-worker.js").exists()
