"""Errors name the place, what is wrong and the remedy, and suggest the nearest name."""

import pickle

import pytest

from candide.errors import CandideError, InputError, SourceError, unknown_name_error


def test_an_error_names_its_place():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, CandideError)
    error = SourceError("'x' is not a number", source="rows.csv", line=7, column="age", value="x")
    assert str(error) == "rows.csv, line 7: column 'age': 'x' is not a number"


def test_an_unknown_name_has_a_suggestion():
    error = unknown_name_error("event", "gausian", ["gaussian", "poisson"])
    assert str(error) == "unknown event 'gausian'; did you mean 'gaussian'? Known: gaussian, poisson"
    assert str(unknown_name_error("column", "Y", ["a", "y"])) == "unknown column 'Y'; did you mean 'y'? Known: a, y"
    assert str(unknown_name_error("column", "q", ["a", "y"])) == "unknown column 'q'. Known: a, y"
    assert unknown_name_error("column", "a,b", ["a", "b", "c"]).remedy == "repeat the option for each, or pass a list"


def error_classes():
    classes = [CandideError]
    for cls in classes:
        classes += [own for own in cls.__subclasses__() if own not in classes and own.__module__ == "candide.errors"]
    return classes


def test_every_class_of_errors_has_a_code_of_its_own():
    codes = [BaseException.__new__(cls).code for cls in error_classes()]
    assert len(set(codes)) == len(codes) > 10
    assert {"input", "unknown-name", "model-file", "not-counted"} <= set(codes)


@pytest.mark.parametrize("cls", error_classes())
def test_every_error_can_be_pickled(cls):
    error = BaseException.__new__(cls, "too large")
    error.__dict__.update(problem="too large", column="age", row=3, value=7, remedy="drop it")
    if cls is SourceError:
        error.__dict__.update(source="rows.csv", line=2)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args, again.__dict__, str(again)) == (cls, error.args, error.__dict__, str(error))
