"""The score expression of every distribution gives its contributions, but for what is the same in every class."""

import numpy as np
import pytest
from tests.distributions.test_base import MAKE, SIZES, block_of

from candide.export.parameters import _to_plain
from candide.export.python_js.operations import compile_score
from candide.export.python_js.reads import count_tokens
from candide.tally.levels import CellLayout
from candide.weighted.terms.interaction_scores import InteractionScores


def exported_contributions(law, block):
    """(row, feature, class) contributions by the exported steps, weighted as a scorer does."""
    found = _to_plain(law.to_export_dict())
    score = compile_score(found, law.n_classes)
    terms = np.array([score(row) for row in rows_of(law, block)])
    weight = np.array(found.get("weight", np.ones(terms.shape[1])))
    return np.where(weight[:, None] == 0, 0.0, terms * weight[:, None])


def rows_of(law, block):
    if law.block_kind != "documents":
        return block.tolist()
    read = law.tokens.to_export_dict()
    texts = (block.text(row, "strict") for row in range(len(block)))
    return [[None if text is None else count_tokens(read, text)] for text in texts]


def contrast(terms):
    """Terms (row, feature, class) less those of the first class; where it has none, nothing is left of the row."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(terms - terms[:, :, :1], nan=0.0)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("seed", range(3))
def test_expressions_give_the_contributions(name, seed):
    rng = np.random.default_rng(seed)
    law = MAKE[name](rng)
    block = block_of(law, rng, 40)
    if law.block_kind == "codes":
        block = np.minimum(block, SIZES)  # of what is new a reader has one code
    assert contrast(exported_contributions(law, block)) == pytest.approx(
        contrast(law.contributions(block).transpose(0, 2, 1)), abs=1e-9
    )


def test_usual_cells_are_not_repeated():
    table = np.zeros((12, 2))
    table[3], table[7, 1] = [0.5, -0.5], 0.25
    law = InteractionScores(table, CellLayout(((0, 1), (1, 2)), (2, 3, 2)))
    assert len(law.to_export_dict()["table"]) == 3
    block = np.array([[1, 0, 1], [0, 0, 1], [1, 2, 0], [-1, 0, 0], [0, 3, 1]], np.int32)
    assert exported_contributions(law, block) == pytest.approx(law.contributions(block).transpose(0, 2, 1))
