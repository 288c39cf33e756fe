"""Python: a model as one module of the standard library alone, its parameters and the scorer.

>>> from candide.demo import garden
>>> text = to_python(FittedModel(garden()))
>>> text.splitlines()[0], "from candide" in text
('# A model exported by Candide. Made by a program: export it again instead of changing it.', False)
"""

from candide.export.joined import EXPORT_MARKER, join_scorer
from candide.export.packed import pack_json
from candide.export.parameters import export_parameters
from candide.model.fitted import FittedModel

_FOOTER = """

PARAMETERS = json.loads({parameters!r})
model = load(PARAMETERS)
columns, classes, voices, score = model.columns, model.classes, model.terms, model.score

if __name__ == "__main__":  # python FILE ROWS.csv > SCORED.csv
    sys.exit(main(model, sys.argv))
"""


def to_python(fitted: FittedModel) -> str:
    """The text of a module with ``score(row)``; run by itself it scores a CSV file."""
    return f"# {EXPORT_MARKER}\n\n{join_scorer('py', ('json',))}{_FOOTER.format(parameters=pack_json(export_parameters(fitted)))}"
