"""The formulas of the pages become MathML, which a browser draws without a script, a font or a network."""

import re
from xml.etree import ElementTree

import pytest
from tests.docs.pages import DOCS, hooks

PAGES = sorted(DOCS.rglob("*.md"))

converter = pytest.importorskip("latex2mathml.converter")
markdown = pytest.importorskip("markdown")
pytest.importorskip("pymdownx")


def html(text):
    extensions = ["attr_list", "tables", "pymdownx.superfences", "pymdownx.arithmatex"]
    found = markdown.markdown(text, extensions=extensions, extension_configs={"pymdownx.arithmatex": {"generic": True}})
    return hooks.on_page_content(found)


def test_a_formula_is_mathml_within_a_line_and_on_its_own():
    page = html("As $a_1 < b$ and\n\n$$\\log p(x \\mid c)$$\n\nbut `$5` and -$5 are none.\n\n```\n$x$\n```\n")
    inline, alone = (ElementTree.fromstring(found) for found in re.findall(r"<math.*?</math>", page))
    assert [inline.get("display"), alone.get("display")] == ["inline", "block"]
    assert "".join(inline.itertext()) == "a1<b"
    assert "".join(alone.itertext()) == "logp(x\u2223c)"
    assert "mspace" in alone[0][1].tag  # log p, not logp
    assert "<code>$5</code>" in page
    assert page.count("<math") == 2


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_formula_of_a_page_is_typeset(path):
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    page = html(text)
    assert "arithmatex" not in page
    for formula in re.findall(r"<math.*?</math>", page, re.DOTALL):
        read = "".join(ElementTree.fromstring(formula).itertext())
        assert not re.search(r"[\\{}$]", read), read  # a command that was not known is left as it was
    wrong = re.findall(r"\$\$|\\(?:frac|log|sum|text)\b", re.sub(r"<code>.*?</code>", "", page, flags=re.DOTALL))
    assert not wrong
