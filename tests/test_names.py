"""Names: the field's own words, one meaning each; every class name exists once."""

import ast
import re
from collections import defaultdict

from tests.architecture import FILES, package_of, tree

# Words of the former private vocabulary, as parts of an identifier, with what to write instead.
BANNED = {
    **dict.fromkeys(("voice", "voices", "voiced"), "term"),
    **dict.fromkeys(
        ("hear", "hears", "heard", "hearing", "listen", "listens", "listener", "listening"), "use, include"
    ),
    **dict.fromkeys(("silent", "silence"), "zero weight, inactive"),
    **dict.fromkeys(
        ("say", "says", "said", "tell", "tells", "told", "speak", "speaks", "speech"), "report, contribute"
    ),
    **dict.fromkeys(("census", "censuses"), "counts"),
    **dict.fromkeys(("law", "laws"), "distribution; in testing, check"),
    **dict.fromkeys(("look", "looks", "looked"), "sample, data check"),
    **dict.fromkeys(("stranger", "strangers", "met"), "unseen, seen"),
    **dict.fromkeys(("likeness", "resemblance", "resemblances"), "prototype, similarity"),
    **dict.fromkeys(("story", "stories"), "generative model"),
    **dict.fromkeys(("shares",), "proportions"),
    **dict.fromkeys(("bend", "bends", "bent"), "calibrate"),
    **dict.fromkeys(("weigh", "weighs", "weighed", "weighing"), "learn weights, reweight"),
    **dict.fromkeys(("alike",), "same encoding"),
    **dict.fromkeys(("compose", "composed"), "select terms"),
    **dict.fromkeys(("judge", "judged", "judges"), "score on labelled rows"),
    **dict.fromkeys(("wanted",), "input schema"),
    **dict.fromkeys(("spelled", "spelling", "spellings"), "number format"),
    **dict.fromkeys(("remark", "remarks"), "note"),
    **dict.fromkeys(("wording",), "formatting"),
    **dict.fromkeys(("lots", "dealt", "dealing"), "sampling, folds"),
    **dict.fromkeys(("door", "doors", "room", "rooms", "shelf", "house", "whoever"), "entry point, package, section"),
    **dict.fromkeys(("floor",), "layer"),
    **dict.fromkeys(("twin", "twins"), "reference implementation"),
    **dict.fromkeys(("nats",), "log_odds"),
}
# Identifiers that have a banned word in another, ordinary meaning.
ALLOWED = {
    "lookup": "a table that is looked up",
    "look_up": "a table that is looked up",
    "floor": "rounding down",
    "ClickHouseDialect": "the name of a database",
}
# Names that are only a participle, a preposition or a pronoun do not say what they hold.
_BARE = """
said told met kept found asked known wanted given some more own among beside there here other others one both
each mine theirs beyond within without apart alone else gone made done taken seen left
"""
BARE = set(_BARE.split())


def words(name):
    """The parts of an identifier, in lower case."""
    return re.findall(r"[a-z]+", re.sub(r"([A-Z]+)", r"_\1", name).lower())


def defined_names(source):
    """Every name that a module defines: functions, classes, arguments, variables, attributes, fields, aliases."""
    for node in ast.walk(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


def is_banned(name):
    return name not in ALLOWED and not BANNED.keys().isdisjoint(words(name))


def public_names(source):
    """Functions, classes, methods and attributes without an underscore."""
    for node in ast.walk(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (
                n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
            )


def violations(list_names, is_wrong):
    """Wrong names by package."""
    found = defaultdict(set)
    for path in FILES:
        package = package_of(path)
        found[package] |= {name for name in (path.stem, *list_names(tree(path))) if is_wrong(name)}
    return {package: sorted(names) for package, names in sorted(found.items()) if names}


def test_identifiers_use_the_fields_own_words():
    assert violations(defined_names, is_banned) == {}


def test_public_names_are_not_bare_participles():
    assert violations(public_names, BARE.__contains__) == {}


def test_the_words_of_an_identifier():
    assert words("NaiveBayes_of2Rows") == ["naive", "bayes", "of", "rows"]
    assert [is_banned(name) for name in ("heard_terms", "HeardTerms", "row_weights")] == [True, True, False]
    source = ast.parse("def f(told):\n    for voice in x: self.heard = 1")
    assert set(defined_names(source)) == {"f", "told", "voice", "heard"}
