"""The site's build runs the pages: it makes the pictures that their code draws, and none is kept in the tree.

A page is Markdown with marks that mean something here:

- a ``python`` block runs, in order within its page; an unlabelled block after it is what it prints;
- a ``sh`` block after ``<!-- runs -->`` is run by a shell, in the folder in which the page's code runs; an unlabelled
  block after it has lines of what it prints;
- an image whose name ends in ``-picture.svg`` or ``-picture.png`` is what the blocks before it have drawn;
- ``<!-- gallery -->`` becomes the pictures of the page, small, each a link to its section;
- ``$...$`` and ``$$...$$`` are formulas as LaTeX writes them; the build makes MathML of them, which browsers draw;
- ``<!-- needs adult_train.parquet -->`` before a block says that it reads that real table. The folder of real tables is
  ``CANDIDE_DATA``, else ``../shared/data`` beside the project; a block whose table is not there is passed over.

``mkdocs.yml`` names this file as a hook; ``tests/docs`` runs the pages through the same functions.
"""

import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = str(ROOT / "examples")
DATA = Path(os.environ.get("CANDIDE_DATA") or ROOT.parent / "shared" / "data")
_PIECE = re.compile(
    r"^```(?P<language>\w*)\n(?P<code>.*?)^```$"
    r"|^<!-- (?:needs (?P<needs>.+?)|(?P<runs>runs)) -->$"
    r"|^!\[(?P<alt>[^\]]*)\]\((?P<picture>\S+-picture\.(?:svg|png))\)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Piece:
    """A block of code, the output shown after it, or a picture; and the real table it waits for."""

    kind: str  # "python", "shell", "shown" or "picture"
    text: str  # the code, the output, or the name of the picture
    absent: str = ""  # the table that is needed and not there
    printed: str = ""  # what the code printed
    image: bytes = b""  # what the code drew


def pieces(markdown: str) -> Iterator[Piece]:
    """The parts of a page that mean something here, in order."""
    needs, absent, runs = "", "", False
    for match in _PIECE.finditer(markdown):
        if match["needs"] or match["runs"]:
            needs, runs = match["needs"] or "", bool(match["runs"])
        elif match["picture"]:
            yield Piece("picture", match["picture"], absent)
        elif match["language"] == "python":
            at_hand = not needs or any(
                (DATA / kind / needs).exists() for kind in ("tables", "text")
            )
            absent, needs = "" if at_hand else needs, ""
            yield Piece("python", match["code"], absent)
        elif match["language"] == "sh" and runs:
            runs = False
            yield Piece("shell", match["code"])
        elif match["language"] in ("", "text"):
            yield Piece("shown", match["code"], absent)


def run(markdown: str, name: str, *, draw: bool = True) -> Iterator[Piece]:
    """Run a page's blocks as one program, in a folder of its own, and say what each printed and drew."""
    names: dict[str, Any] = {"__name__": name}
    os.environ["CANDIDE_DATA"] = str(DATA)
    if (
        EXAMPLES not in sys.path
    ):  # pages import examples; mkdocs restores the path after it has imported this file
        sys.path.append(EXAMPLES)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for piece in pieces(markdown):
            if piece.absent or piece.kind == "shown":
                yield piece
            elif piece.kind == "python":
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(piece.text, name, "exec"), names)
                yield Piece("python", piece.text, printed=out.getvalue())
            elif piece.kind == "shell":
                yield Piece("shell", piece.text, printed=_shell(piece.text))
            else:
                yield Piece("picture", piece.text, image=_drawn(piece.text, draw))


def _shell(code: str) -> str:
    """Run commands with this environment's programs; a failure is an error."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    known = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # as in a pipe
    done = subprocess.run(
        ["sh", "-ec", code], env={**known, "PATH": path}, capture_output=True, text=True
    )
    if done.returncode:
        raise ValueError(f"{code}ended with status {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def _drawn(name: str, draw: bool) -> bytes:
    """The current figure as an image file; with ``draw=False`` only whether there is one."""
    from matplotlib import pyplot

    if not pyplot.get_fignums():
        raise ValueError(f"{name}: the blocks before it draw nothing")
    out = io.BytesIO()
    if draw:
        metadata = {"Date": None} if name.endswith("svg") else None
        pyplot.savefig(out, format=name[-3:], dpi=130, bbox_inches="tight", metadata=metadata)
    pyplot.close("all")
    return out.getvalue() if draw else b"drawn"


def on_config(config: Any) -> Any:
    """Figures are drawn without a screen, and words in them stay words."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "candide", "figure.figsize": (6.4, 4.2)}
    )
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add every page's pictures to the site."""
    from mkdocs.structure.files import File

    for page in list(files.documentation_pages()):
        markdown = page.content_string
        if "-picture." not in markdown:
            continue
        for piece in run(markdown, page.src_uri):
            if piece.image:
                uri = (Path(page.src_uri).parent / piece.text).as_posix()
                files.append(File.generated(config, uri, content=piece.image))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Write out the commands; and where a real table is not at hand, say so in place of its picture."""
    if "<!-- commands -->" in markdown:
        markdown = markdown.replace("<!-- commands -->", commands())
    if "<!-- gallery -->" in markdown:
        markdown = markdown.replace("<!-- gallery -->", gallery(markdown))
    for piece in pieces(markdown):
        if piece.kind == "picture" and piece.absent:
            image = re.compile(
                rf"^!\[([^\]]*)\]\({re.escape(piece.text)}\)(\{{[^}}]*\}})?$", re.MULTILINE
            )
            markdown = image.sub(
                rf"*(A picture, \1, is drawn where `{piece.absent}` is at hand.)*", markdown
            )
    return markdown


_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(content: str, **_: Any) -> str:
    """Formulas of a page, which the Markdown extension has found, as MathML."""
    return _FORMULA.sub(_typeset, content)


def _typeset(formula: re.Match[str]) -> str:
    """A formula on a line of its own, or within one; a space parts the name of a function from what it is of."""
    import html

    from latex2mathml.converter import convert

    latex, alone = html.unescape(formula["latex"]).strip(), formula["tag"] == "div"
    mathml = convert(latex, display="block" if alone else "inline")
    mathml = re.sub(
        r"(<mi>(?:log|ln)</mi>)(?!<mo[^>]*>&#x00028;)", r'\1<mspace width="0.167em"/>', mathml
    )
    return f'<div class="formula">{mathml}</div>' if alone else mathml


def sections(markdown: str) -> dict[str, tuple[str, str]]:
    """The name and the words of the first picture under each heading of the third level that has one."""
    found = {}
    for section in re.split(r"^### ", markdown, flags=re.MULTILINE)[1:]:
        text = re.split(r"^## ", section, flags=re.MULTILINE)[0]
        picture = next((m for m in _PIECE.finditer(text) if m["picture"]), None)
        if picture:
            found[text.splitlines()[0]] = (picture["picture"], picture["alt"])
    return found


def gallery(markdown: str) -> str:
    """The first picture of each section of a page, small, as a link to the section with its code."""
    shown = [
        f'<a href="#{name}"><img src="{picture}" alt="{alt}" loading="lazy"><span>{name}</span></a>'
        for name, (picture, alt) in sections(markdown).items()
    ]
    return '<div class="gallery">' + "\n".join(shown) + "</div>"


def commands() -> str:
    """Every command of the command line, from its own help: what it does, an example, its options."""
    from candide.cli import cli
    from candide.cli.group import iterate_commands

    return "\n".join(_command(name, command) for name, command in iterate_commands(cli))


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join(
        ["candide", name, *(a.make_metavar(_context(command)) for a in arguments), "[OPTIONS]"]
    )
    lines = [
        f"## candide {name}",
        "",
        f"```sh\n{usage}\n```",
        "",
        inspect.cleandoc(command.help),
        "",
    ]
    lines += ["| option | meaning |", "|---|---|"] if options else []
    for option in options:
        names = ", ".join(f"`{text}`" for text in [*option.opts, *option.secondary_opts])
        value = "" if option.is_flag else f" {option.make_metavar(_context(command))}"
        default = f" Default: {option.default}." if option.show_default else ""
        cells = (f"{names}{value}", f"{option.help}{default}")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _context(command: Any) -> Any:
    import click

    return click.Context(command)
