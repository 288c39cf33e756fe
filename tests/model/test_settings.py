"""One record of settings: every face has each of its fields, with its default, and a file keeps them."""

import inspect
from dataclasses import fields

import pytest

import candide as cd
from candide.errors import InputError, UnknownNameError
from candide.model.settings import Settings
from candide.store import values

X, Y = [[1.0, 5.0], [2.0, 7.0], [8.0, 1.0], [9.0, 2.0]], ["a", "a", "b", "b"]
OTHERS = {"class_prior": "uniform", "estimate": "map", "param_priors": "jeffreys", "select": 1}
every_setting = pytest.mark.parametrize("one", fields(Settings), ids=lambda one: one.name)


@every_setting
def test_a_setting_is_a_parameter_of_naive_bayes(one):
    parameter = inspect.signature(cd.NaiveBayes.__init__).parameters[one.name]  # add it there, too
    assert parameter.default == one.default


@every_setting
def test_a_setting_reaches_the_model_by_every_door_and_stays_in_its_file(one, tmp_path):
    other = {one.name: OTHERS[one.name]}  # name another value of a new setting above
    model = cd.NaiveBayes(**other).fit(X, Y)
    assert getattr(model.fitted_.settings, one.name) == other[one.name]
    assert getattr(cd.NaiveBayes().fit(X, Y).with_prior(**other).fitted_.settings, one.name) == other[one.name]
    table = {"u": [x for x, _ in X], "v": [x for _, x in X], "y": Y}
    assert getattr(cd.fit(table, "y", **other, model="naive").fitted_.settings, one.name) == other[one.name]
    model.save(tmp_path / "m.candide")
    loaded = cd.load(tmp_path / "m.candide")
    assert getattr(loaded, one.name) == getattr(loaded.fitted_.settings, one.name) == other[one.name]
    packed = values.pack_settings(model.fitted_.settings, {})
    assert getattr(values.unpack_settings(packed, {}), one.name) == other[one.name]


def test_a_file_without_a_setting_has_its_default():
    assert values.unpack_settings({"estimate": "map"}, {}) == Settings(estimate="map")


def test_an_unknown_setting_is_named():
    with pytest.raises(UnknownNameError) as error:
        cd.NaiveBayes().fit(X, Y).with_prior(estimat="map")
    assert error.value.value == "estimat"


def test_the_drop_ins_refuse_what_they_do_not_take():
    with pytest.raises(InputError, match="class_prior"):
        cd.MultinomialNB().fit([[1, 2], [3, 0]], ["a", "b"]).with_prior(class_prior="uniform")
