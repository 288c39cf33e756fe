"""The page of pictures has them all: every function of candide.plot, and every picture of the command line."""

import re

from tests.docs.pages import DOCS, hooks

from candide import plot
from candide.cli import cli
from candide.plot.picture import PLOTS

PAGE = (DOCS / "how-to" / "pictures.md").read_text()


def test_every_function_has_a_section_with_its_code_and_its_picture():
    assert sorted(hooks.sections(PAGE)) == sorted(plot.__all__)
    for name in plot.__all__:
        section = PAGE.split(f"\n### {name}\n")[1].split("\n### ")[0]
        assert re.search(rf"^```python\n(?:(?!^```).)*plot\.{name}\(", section, re.MULTILINE | re.DOTALL), name


def test_every_picture_of_the_command_line_is_in_the_table_and_in_the_help():
    table = re.findall(r"^\| `(\w+)` \| \[(\w+)\]\(#(\w+)\)", PAGE, re.MULTILINE)
    assert sorted(what for what, _, _ in table) == sorted(PLOTS)
    assert all(name == anchor and name in plot.__all__ for _, name, anchor in table)
    [what] = [option for option in cli.commands["plot"].params if option.name == "what"]
    assert sorted(re.findall(r"\w+", re.sub(r"and from labelled rows", "", what.help))) == sorted(PLOTS)


def test_the_gallery_links_each_picture_to_its_section():
    links = re.findall(r'<a href="#(\w+)"><img src="(\S+)" alt="[^"]+"', hooks.gallery(PAGE))
    assert [name for name, _ in links] == list(hooks.sections(PAGE))
    assert len({picture for _, picture in links}) == len(links)
    assert "<!-- gallery -->" in PAGE
