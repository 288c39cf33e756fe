"""One record of settings: estimators, functions, options and model files are made from its fields."""

from dataclasses import dataclass, fields
from inspect import signature

import pytest

import candide as cd
from candide.cli.options import options_from_fields
from candide.errors import InputError, ModelFileError, UnknownNameError
from candide.estimators.sklearn_contract import takes_settings
from candide.model.settings import Settings, setting
from candide.store import values

X, Y = [[1.0, 5.0], [2.0, 7.0], [8.0, 1.0], [9.0, 2.0]], ["a", "a", "b", "b"]
OTHERS = {"class_prior": "uniform", "estimate": "map", "param_priors": "jeffreys", "select": 1}
every_setting = pytest.mark.parametrize("field", fields(Settings), ids=lambda field: field.name)


@every_setting
def test_a_setting_is_a_parameter_of_naive_bayes(field):
    assert signature(cd.NaiveBayes.__init__).parameters[field.name].default == field.default


@every_setting
def test_a_setting_reaches_the_model_and_its_file_from_every_interface(field, tmp_path):
    other = {field.name: OTHERS[field.name]}  # name another value of a new setting above
    model = cd.NaiveBayes(**other).fit(X, Y)
    assert getattr(model.fitted_.settings, field.name) == other[field.name]
    assert getattr(cd.NaiveBayes().fit(X, Y).with_prior(**other).fitted_.settings, field.name) == other[field.name]
    table = {"u": [x for x, _ in X], "v": [x for _, x in X], "y": Y}
    assert getattr(cd.fit(table, "y", **other, model="naive").fitted_.settings, field.name) == other[field.name]
    model.save(tmp_path / "m.candide")
    loaded = cd.load(tmp_path / "m.candide")
    assert getattr(loaded, field.name) == getattr(loaded.fitted_.settings, field.name) == other[field.name]
    packed = values.pack_settings(model.fitted_.settings, {})
    assert getattr(values.unpack_settings(packed, {}), field.name) == other[field.name]


def test_a_new_setting_is_one_field():
    """A field is a parameter of estimators, an option, and an entry of model files with its check."""

    @dataclass(frozen=True)
    class MoreSettings(Settings):
        passes: int = setting(1, "Passes over the counts.", parse=int, least=1)

    class Estimator:
        @takes_settings(MoreSettings)
        def __init__(self, **settings): ...

    assert Estimator(passes=3).passes == 3
    assert signature(Estimator).parameters["passes"].default == 1
    assert "--passes" in [option.opts[0] for option in options_from_fields(MoreSettings)]
    packed = values.pack_settings(MoreSettings(passes=3), {})
    assert values.unpack_settings(packed, {}, MoreSettings) == MoreSettings(passes=3)
    with pytest.raises(ModelFileError, match="'passes'") as error:
        values.unpack_settings({**packed, "passes": 0}, {}, MoreSettings)
    assert error.value.value == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("class_prior", "flat"), ("class_prior", {"pairs": [["a", "x"]]}), ("estimate", "best"), ("estimate", None),
     ("param_priors", "flat"), ("select", 0), ("select", "some"), ("select", True)],
)  # fmt: skip
def test_a_file_with_an_invalid_setting_is_rejected(name, value):
    with pytest.raises(ModelFileError, match=repr(name)):
        values.unpack_settings({name: value}, {})


def test_a_setting_that_a_file_does_not_have_is_the_default():
    assert values.unpack_settings({"estimate": "map"}, {}) == Settings(estimate="map")


def test_an_unknown_setting_is_named():
    with pytest.raises(UnknownNameError) as error:
        cd.NaiveBayes().fit(X, Y).with_prior(estimat="map")
    assert error.value.value == "estimat"


def test_the_drop_ins_reject_other_settings():
    with pytest.raises(InputError, match="class_prior"):
        cd.MultinomialNB().fit([[1, 2], [3, 0]], ["a", "b"]).with_prior(class_prior="uniform")
