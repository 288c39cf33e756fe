"""The reference tells of every event model under the same five headings, and of every command."""

import importlib.util
import inspect
import re
from importlib import import_module

import pytest
from tests.docs.pages import DOCS, hooks

from candide.events import EVENTS

HEADINGS = ["Density", "Tally", "Estimate", "Evidence", "When it is wrong"]


def test_every_event_model_has_the_same_five_headings():
    text = (DOCS / "reference" / "events.md").read_text()
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert sections.pop("Settings")
    assert {name.lower() for name in sections} == set(EVENTS)
    for name, section in sections.items():
        found = re.split(r"^### (.+)\n+", section, flags=re.MULTILINE)
        assert found[1::2] == HEADINGS, name
        assert all(len(body.strip()) > 20 for body in found[2::2]), name


def test_every_command_and_option_is_documented():
    from candide.cli import cli
    from candide.cli.group import iterate_commands

    text = hooks.commands()
    for name, command in iterate_commands(cli):
        assert f"## candide {name}\n" in text
        for param in command.params:
            if param.param_type_name == "option":
                assert f"`{param.opts[0]}`" in text
                assert param.help, f"candide {name} {param.opts[0]} has no help"


def test_every_page_is_in_the_navigation():
    """What is not there cannot be found by a reader; the build also warns of it."""
    site = (DOCS.parent / "mkdocs.yml").read_text()
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert [page for page in pages if page not in site] == []


REFERRED = sorted(
    {name for page in DOCS.rglob("*.md") for name in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE)}
)


@pytest.mark.parametrize("name", REFERRED)
def test_what_a_page_refers_to_is_there(name):
    try:
        import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name


def test_a_parameter_described_in_one_line_is_found():
    griffe = pytest.importorskip("griffe", reason="the site needs mkdocstrings")
    spec = importlib.util.spec_from_file_location("docstrings", DOCS / "docstrings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("NaiveBayes", "TextNB", "GaussianNB", "CategoricalNB", "GaussianBayes"):
        text = module.described(inspect.cleandoc(getattr(import_module("candide"), name).__doc__))
        sections = griffe.Docstring(text).parse("numpy")
        items = [one for part in sections if part.kind.value in ("parameters", "attributes") for one in part.value]
        assert items
        assert [one.name for one in items if not one.description] == []
