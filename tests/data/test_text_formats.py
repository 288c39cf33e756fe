"""How numbers and dates of text are read."""

import numpy as np
import pytest

import candide as cd
from candide.data.text_formats import PLAIN_FORMAT, TextFormat, parse_text_value
from candide.errors import InputError


@pytest.mark.parametrize("how", [PLAIN_FORMAT, TextFormat(date="%d.%m.%Y")])
def test_text_that_is_not_a_date_stays_text_and_empty_text_is_missing(how):
    assert [parse_text_value(text, how, "date") for text in ("soon", "", "  ", "NA")] == ["soon", None, None, None]


@pytest.mark.parametrize("text", ["soon"])
def test_a_text_that_is_no_date_is_refused_where_dates_were_counted(text):
    days = np.array("2020-01-01", "M8[D]") + np.arange(60)
    model = cd.NaiveBayes().fit({"day": days}, np.arange(60) < 30)
    with pytest.raises(InputError) as caught:
        model.predict_proba({"day": [text]})
    assert (caught.value.column, caught.value.value) == ("day", text)
    day = model.predict_proba({"day": ["2020-01-05"]})
    np.testing.assert_allclose(day, model.predict_proba({"day": np.array(["2020-01-05"], "M8[D]")}))
