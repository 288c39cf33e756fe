"""Settings, events and priors as JSON."""

import json

import pytest
from tests.model_cases import labels_of, numbers

import candide as cd
from candide.errors import InputError, ModelFileError


def test_what_cannot_be_saved_is_reported(tmp_path):
    import fractions

    from candide.events import Gaussian

    class Mine(Gaussian):
        pass

    X, y = numbers(), labels_of("str")
    with pytest.raises(InputError, match="pickle the model"):
        cd.NaiveBayes(Mine()).fit(X, y).save(tmp_path / "m")
    parts = [fractions.Fraction(1 + i % 2, 3) for i in range(len(y))]
    with pytest.raises(InputError, match="is a Fraction; a model file holds text, numbers, booleans, dates and times"):
        cd.NaiveBayes("categorical").fit({"part": parts}, y).save(tmp_path / "m")
    with pytest.raises(InputError, match="detail"):
        cd.NaiveBayes().fit(X, y).save(tmp_path / "m", detail="tallies")
    with pytest.raises(InputError, match="provenance"):
        cd.NaiveBayes().fit(X, y).save(tmp_path / "m", provenance={"rows": 3})
    assert not list(tmp_path.iterdir())


def test_a_dictionary_of_parameters_comes_back():
    from candide.events import Gaussian
    from candide.store import values

    given = {"events": {("a", "b"): Gaussian(covariance="full"), 3: "poisson"}, "alpha": 0.5, "names": ("x", None)}
    arrays = {}
    assert values.unpack_value(json.loads(json.dumps(values.pack_value(given, arrays))), arrays) == given
    with pytest.raises(ModelFileError, match="a name that is neither"):
        values.unpack_value({"pairs": [[{"pairs": []}, 1]]}, {})
