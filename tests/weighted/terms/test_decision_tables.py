"""Decision tables: what they learn, that no chain has seen a row that it scores, how they are kept and explained."""

from dataclasses import replace

import numpy as np
import pytest

import candide as cd
from candide.data.blocks import ArrayValue
from candide.errors import InputError, MergeError
from candide.explain.effects import Effects
from candide.explain.terms import list_terms
from candide.kernels import threads
from candide.weighted.terms import table_growth as growth
from candide.weighted.terms.decision_tables import DecisionTables


def rows(n=800, seed=0):
    """Three classes by the parity of three columns and a threshold; missing numbers and many towns."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 2, (3, n))
    x = rng.normal(size=n).round(2)
    y = np.where(x > 0.8, "far", np.where(a ^ b ^ c, "odd", "even"))
    noise = rng.random(n) < 0.05
    y[noise] = rng.choice(["far", "odd", "even"], noise.sum())
    x[rng.random(n) < 0.1] = np.nan
    X = {"a": np.array(["no", "yes"])[a], "b": np.array(["old", "new"])[b], "c": np.array(["in", "out"])[c], "x": x}
    return X | {"town": np.array([f"t{i}" for i in range(30)])[rng.integers(0, 30, n)]}, y


def coded(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 5, (d, n)).astype(np.uint8)
    keys = growth.column_keys([f"x{j}" for j in range(d)])
    kinds = np.array([1, 2] * (d // 2), np.uint8)
    y = ((codes[0] > 2) ^ (codes[1] % 2 == 0)).astype(np.intp)
    return growth.ByteRows(codes, np.full(d, 5), kinds, keys), np.where(rng.random(n) < 0.1, 1 - y, y)


LOG_PRIOR = np.log([0.5, 0.5])


@pytest.fixture(scope="module")
def model():
    return cd.BayesClassifier(terms="tables").fit(*rows())


def tables_of(model):
    [i] = [i for i, part in enumerate(model.counts_.plan.parts) if isinstance(part.event, DecisionTables)]
    return model.counts_.plan.parts[i], model.fitted_.model.distributions[i]


# What they learn


def test_tables_learn_a_rule_of_three_columns(model):
    X, y = rows(4000, seed=1)
    assert model.score(X, y) > 0.9
    assert any(term.kind == "decision tables" for term in model.terms_)


def test_noise_rarely_gets_tables():
    fitted = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = {f"x{j}": rng.normal(size=200).round(2) for j in range(6)}
        fitted.append(cd.BayesClassifier(terms="tables").fit(X, rng.integers(0, 2, 200)))
    assert sum(any("tables" in term.title for term in model.terms_) for model in fitted) <= 3


def test_a_single_column_has_no_tables():
    X, y = rows()
    model = cd.BayesClassifier(terms="tables").fit({"x": X["x"]}, y)
    assert not any(isinstance(part.event, DecisionTables) for part in model.counts_.plan.parts)


# Honesty: blind quarters


def test_no_chain_has_seen_the_labels_of_its_quarter():
    coded_rows, y = coded()
    flipped = np.where(coded_rows.quarters == 2, 1 - y, y)
    chains = [growth.Chain(coded_rows, labels, None, LOG_PRIOR, 2, (0,)) for labels in (y, flipped)]
    for _ in range(5):
        mine, theirs = (chain.grow() for chain in chains)
        np.testing.assert_array_equal(mine, theirs)


def test_equal_rows_are_in_one_quarter_whatever_the_order_of_rows_and_columns():
    coded_rows, _ = coded()
    order, columns = np.random.default_rng(1).permutation(400), [2, 0, 3, 1]
    quarters = growth.assign_quarters(coded_rows.codes, coded_rows.keys)
    moved = growth.assign_quarters(coded_rows.codes[columns][:, order], coded_rows.keys[columns])
    np.testing.assert_array_equal(moved, quarters[order])
    assert np.bincount(quarters, minlength=4).min() > 50
    again = growth.assign_quarters(np.tile(coded_rows.codes, 3), coded_rows.keys)
    np.testing.assert_array_equal(again, np.tile(quarters, 3))


def test_copies_of_rows_make_no_difference():
    """Copies in the blind quarter and outside it would give tables a weight that they do not deserve."""
    X, y = rows(400)
    X["x"] = np.round(np.nan_to_num(X["x"]) + np.random.default_rng(3).normal(size=400), 3)  # so copies are recognised
    once = cd.BayesClassifier(terms="tables").fit(X, y)
    copied = {name: np.repeat(column, 5) for name, column in X.items()}
    five = cd.BayesClassifier(terms="tables").fit(copied, np.repeat(y, 5))
    new = rows(500, seed=9)[0]
    np.testing.assert_allclose(five.predict_proba(new), once.predict_proba(new), atol=0.01)


def test_held_out_contributions_are_those_of_the_blind_chains(model):
    part, distribution = tables_of(model)
    X, y = rows()
    block = part.block(model._read(X))
    tally = model.counts_.tallies[model.counts_.plan.parts.index(part)]
    event = part.event.match_classes(model.counts_.labels)
    held_out = event.held_out_contributions(tally, None, "predictive", block, np.zeros(len(y), np.intp))
    quarters = growth.assign_quarters(growth.byte_codes(block, tally.layout.sizes), np.array(event.keys))
    plain = replace(distribution.base_and_weights[0], weight=None)
    for quarter in range(4):
        own = quarters == quarter
        chains = np.arange(event.n_chains) % 4 == quarter
        np.testing.assert_allclose(held_out[own], plain.contributions_of_chains(block[own], chains))


def test_growth_ends_where_left_out_rows_gain_nothing():
    coded_rows, _ = coded()
    noise = np.random.default_rng(5).integers(0, 2, 400)
    assert growth.grow_tables(coded_rows, noise, None, LOG_PRIOR, 64).n_tables < 5


# The same model everywhere


def test_threads_make_no_difference():
    coded_rows, y = coded()
    found = []
    for parts in (1, 3):
        with threads.force_parts(parts):
            found.append(growth.grow_tables(coded_rows, y, None, LOG_PRIOR, 10))
    for a, b in zip(found[0].tables, found[1].tables, strict=True):
        np.testing.assert_array_equal(a.columns, b.columns)
        np.testing.assert_array_equal(a.values, b.values)


def test_the_order_of_rows_makes_no_difference(model):
    X, y = rows()
    order = np.random.default_rng(0).permutation(len(y))
    moved = cd.BayesClassifier(terms="tables").fit({name: X[name][order] for name in X}, y[order])
    new, _ = rows(200, seed=2)
    np.testing.assert_allclose(moved.predict_proba(new), model.predict_proba(new), atol=1e-9)


def test_the_order_of_columns_makes_no_difference_to_growth():
    coded_rows, y = coded()
    order = np.array([2, 0, 3, 1])
    codes, sizes = np.ascontiguousarray(coded_rows.codes[order]), coded_rows.sizes[order]
    moved = growth.ByteRows(codes, sizes, coded_rows.kinds[order], coded_rows.keys[order])
    mine, theirs = (growth.grow_tables(each, y, None, LOG_PRIOR, 8) for each in (coded_rows, moved))
    assert mine.n_tables == theirs.n_tables > 0
    for a, b in zip(mine.tables, theirs.tables, strict=True):
        assert a.columns.tolist() == order[b.columns].tolist()
        np.testing.assert_allclose(a.values, b.values, atol=1e-9)


def test_row_weights_are_frequencies():
    coded_rows, y = coded(2000)
    twice = coded_rows.take(np.repeat(np.arange(2000), 2))
    weighted = growth.grow_tables(coded_rows, y, np.full(2000, 2.0), LOG_PRIOR, 6)
    copied = growth.grow_tables(twice, np.repeat(y, 2), None, LOG_PRIOR, 6)
    assert weighted.n_tables == copied.n_tables > 0
    first, same = weighted.tables[0], copied.tables[0]  # rounding may turn a near tie in later ones
    np.testing.assert_array_equal(first.columns, same.columns)
    np.testing.assert_allclose(first.observed, same.observed)
    np.testing.assert_allclose(first.values, same.values, atol=1e-9)
    assert weighted.held_out_loss == pytest.approx(copied.held_out_loss, rel=0.02)


@pytest.mark.parametrize("detail", ["tally", "explain", "score"])
def test_tables_are_saved_and_loaded(model, detail, tmp_path):
    model.save(tmp_path / "m.candide", detail=detail)
    new, _ = rows(300, seed=3)
    np.testing.assert_array_equal(cd.load(tmp_path / "m.candide").predict_proba(new), model.predict_proba(new))


def test_a_source_gives_the_same_model(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = rows()
    pq.write_table(pa.table({**X, "way": y}), tmp_path / "rows.parquet")
    found = cd.fit(tmp_path / "rows.parquet", "way", terms="tables")
    again = cd.fit({**X, "way": y}, "way", terms="tables")
    new, _ = rows(300, seed=3)
    np.testing.assert_allclose(found.predict_proba(new), again.predict_proba(new), atol=1e-9)


# Algebra: questions and values stay


def test_models_that_are_fitted_alike_add_and_subtract(model):
    X, y = rows(300, seed=4)
    other = cd.BayesClassifier(terms="tables", like=model).fit(X, y)
    both = model + other
    np.testing.assert_allclose((both - other).counts_.class_weight, model.counts_.class_weight)
    assert tables_of(both)[0].event == tables_of(model)[0].event
    with pytest.raises(MergeError):
        model + cd.BayesClassifier(terms="tables").fit(X, y)


def test_a_new_class_and_a_new_level_leave_the_tables_as_they_are(model):
    X, y = rows(60, seed=5)
    X["town"] = np.array(["elsewhere"] * 60)
    later = cd.BayesClassifier(terms="tables").fit(*rows()).partial_fit(X, np.where(y == "far", "beyond", y))
    assert list(later.classes_) == ["beyond", "even", "far", "odd"]
    _, distribution = tables_of(later)
    values = distribution.base_and_weights[0].values
    assert values.shape[2] == 4
    np.testing.assert_array_equal(values[:, :, 0], 0.0)  # of a class that no table has seen
    np.testing.assert_allclose(later.predict_proba(X).sum(axis=1), 1.0)


def test_weights_are_learned_again(model):
    again = model.reweight(*rows())
    new, truth = rows(500, seed=6)
    assert again.score(new, truth) > 0.9


# Explanations


@pytest.mark.parametrize("by", ["term", "column"])
def test_contributions_add_up(model, by):
    new, _ = rows(20, seed=7)
    p = np.log(model.predict_proba(new))
    for row, decision in enumerate(model.explain(new, by)):
        order = np.argsort(-p[row])
        log_odds = decision.class_prior + sum(c.log_odds for c in decision.contributions)
        assert log_odds == pytest.approx(p[row, order[0]] - p[row, order[1]], abs=1e-9)


def test_shapley_values_of_columns_add_up_to_each_segment(model):
    part, distribution = tables_of(model)
    block = part.block(model._read(rows(15, seed=8)[0]))
    distribution = distribution.base_and_weights[0]
    whole = distribution.contributions(block)
    for row, by_column in enumerate(distribution.column_contributions(block)):
        np.testing.assert_allclose(by_column.sum(axis=0), whole[row], atol=1e-9)


def test_shapley_values_are_the_mean_over_all_orders():
    from itertools import permutations

    mean = np.random.default_rng(0).normal(size=(1, 8, 2))  # (table, set of the last three bits, class)
    from candide.weighted.terms.table_scores import _shapley_values

    expected = np.zeros((3, 2))
    for order in permutations(range(3)):
        known = 0
        for question in order:
            bit = 1 << (2 - question)
            expected[question] += (mean[0, known | bit] - mean[0, known]) / 6
            known |= bit
    np.testing.assert_allclose(_shapley_values(mean, 3, 3)[0], expected, atol=1e-12)


def test_total_effects_and_importance_include_the_tables(model):
    importance = {term.title: term.importance for term in list_terms(model.fitted_)}
    assert all(value > 0 for title, value in importance.items() if title.startswith("decision tables"))
    effects = {effect.column: effect for effect in Effects(model.fitted_).column_effects}
    far = list(model.classes_).index("far")
    curve = effects["x"].axis.contributions[:, far]
    assert curve[-1] > curve[0] + 1


# Files that were changed


def test_arrays_that_do_not_fit_are_refused(model):
    event = tables_of(model)[0].event
    n = len(event.columns.array)
    for changed in (
        {"columns": ArrayValue(event.columns.array[:, :4])},
        {"columns": ArrayValue(np.full((n, 8), -1, np.int32))},
        {"sides": ArrayValue(event.sides.array[:-1])},
        {"values": ArrayValue(event.values.array * np.float32(np.nan))},
        {"cell_rows": ArrayValue(-event.cell_rows.array)},
        {"n_tables": event.n_tables + 1},
        {"classes": ("even",)},
        {"importances": (1.0,) * 50},
    ):
        with pytest.raises(InputError):
            replace(event, **changed)
    with pytest.raises(InputError):
        event.spec(2, tables_of(model)[0].encodings[:2])
