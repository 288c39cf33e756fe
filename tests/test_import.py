"""``import candide`` is quick because it imports next to nothing, and loading and predicting little more."""

import subprocess
import sys

import pytest

import candide as cd

HEAVY = {"sklearn", "pyarrow", "duckdb", "matplotlib", "pandas", "polars", "scipy.stats", "narwhals", "sqlglot", "rich"}


def modules_after(statement):
    """What a fresh interpreter has loaded after one statement."""
    code = f"import sys; {statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_no_heavy_library():
    loaded = modules_after("import candide")
    assert "candide" in loaded
    assert not loaded & HEAVY


def test_the_probe_would_notice():
    assert "scipy.stats" in modules_after("import scipy.stats")


X, Y = [[0, 1], [1, 2], [2, 0], [2, 2]], [0, 0, 1, 1]
ESTIMATORS = [
    "NaiveBayes",
    "GaussianBayes",
    "GaussianNB",
    "BernoulliNB",
    "MultinomialNB",
    "ComplementNB",
    "CategoricalNB",
]


@pytest.mark.parametrize("detail", ["tally", "score"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_to_load_and_predict_takes_no_heavy_library(name, detail, tmp_path):
    getattr(cd, name)().fit(X, Y).save(tmp_path / "m", detail=detail)
    path, rows = str(tmp_path / "m"), f"X = np.array({X}, float)"
    calls = "model.predict(X), model.predict_proba(X), model.explain(X), repr(model), model.get_params()"
    loaded = modules_after(f"import numpy as np, candide as cd; model = cd.load({path!r}); {rows}; {calls}")
    assert not loaded & HEAVY


LATER = {"conjugate.normal", "conjugate.dirichlet", "weighted.terms.discriminant_scores"} | {
    *("distributions.base", "distributions.density", "distributions.categorical", "distributions.arrays"),
    *("data.column_types", "data.documents", "engines.arrays", "fit_source", "explain.decisions", "kernels.text"),
}  # what a model that is loaded needs when it is estimated or fitted again


@pytest.mark.parametrize("name", ["NaiveBayes", "BayesClassifier"])
def test_to_load_takes_nothing_that_estimates_asks_or_fits(name, tmp_path):
    rows = {"size": [1.0, 2.0, 8.0, 9.0] * 9, "kind": ["a", "a", "b", "c"] * 9}
    getattr(cd, name)().fit(rows, [0, 0, 1, 1] * 9).save(tmp_path / "m")
    loaded = modules_after(f"import candide as cd; cd.load({str(tmp_path / 'm')!r})")
    assert "candide.model.fitted" in loaded
    assert not {f"candide.{module}" for module in LATER} & loaded


def test_what_is_loaded_later_is_there():
    """So that no module is forgotten in the list when it is renamed."""
    from importlib.util import find_spec

    assert [module for module in LATER if find_spec(f"candide.{module}") is None] == []


@pytest.mark.parametrize("name", ESTIMATORS)
def test_to_fit_and_predict_arrays_takes_no_scikit_learn(name):
    loaded = modules_after(
        f"import numpy as np, candide as cd; X = np.array({X}); cd.{name}().fit(X, np.array({Y})).predict(X)"
    )
    assert not loaded & HEAVY


def test_to_learn_documents_takes_no_scikit_learn(tmp_path):
    cd.TextNB().fit(["free prize", "see you"], ["spam", "ham"]).save(tmp_path / "m")
    loaded = modules_after(f"import candide as cd; cd.load({str(tmp_path / 'm')!r}).predict(['free'])")
    assert "sklearn" not in loaded


def test_tables_and_the_command_line_take_no_scikit_learn(tmp_path):
    (tmp_path / "a.csv").write_text("size,kind\n" + "1,a\n2,a\n8,b\n9,b\n" * 5)
    data, model, out = (str(tmp_path / name) for name in ("a.csv", "m.candide", "out.csv"))
    loaded = modules_after(f"import candide as cd; cd.fit({data!r}, 'kind').save({model!r})")
    assert not loaded & {"sklearn", "pandas"}
    command = f"cli(['predict', {model!r}, {data!r}, '-o', {out!r}], standalone_mode=False)"
    assert "sklearn" not in modules_after(f"from candide.cli import cli; {command}")


def test_help_takes_no_numpy():
    code = "from contextlib import redirect_stdout as to; import io; from candide.cli import cli"
    loaded = modules_after(f"{code}\nwith to(io.StringIO()): cli(['--help'], standalone_mode=False)")
    assert "candide.cli.fit" in loaded
    assert not loaded & {"numpy", *HEAVY - {"rich"}}
