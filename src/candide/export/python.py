"""Python: a model as one module of the standard library alone, its parameters and the scorer.

>>> from candide.demo import garden
>>> text = python(Fitted(garden()))
>>> text.splitlines()[0], "from candide" in text
('# A model exported by Candide. Made by a program: export it again instead of changing it.', False)
"""

from candide.export.joined import MARK, source
from candide.export.packed import as_json
from candide.export.parameters import parameters
from candide.model.fitted import Fitted

_USE = """

PARAMETERS = json.loads({parameters!r})
model = load(PARAMETERS)
columns, classes, voices, score = model.columns, model.classes, model.voices, model.score

if __name__ == "__main__":  # python FILE ROWS.csv > SCORED.csv
    sys.exit(main(model, sys.argv))
"""


def python(fitted: Fitted) -> str:
    """The text of a module with ``score(row)``; run by itself it scores a CSV file."""
    return f"# {MARK}\n\n{source('py', ('json',))}{_USE.format(parameters=as_json(parameters(fitted)))}"
