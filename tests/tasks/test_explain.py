"""Rows of a source are explained with their values in the types that the model counted."""

import candide as cd
from candide.operations import explain_rows


def test_values_of_a_csv_come_in_the_types_of_the_levels(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("flag,size,y\n" + "True,1.5,a\nFalse,2.5,b\nTrue,3,a\nFalse,1,b\nTrue,2,b\n" * 3)
    [found] = explain_rows(cd.fit(path, "y", model="naive"), path, [2])
    values = {one.column: one.value for one in found.decision.contributions}
    assert (found.row, found.label, values) == (2, "b", {"flag": False, "size": 2.5})
