"""What every law answers for itself: its form, its weights, its mean, its divergence, its arrays."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candide import distributions as laws
from candide.data.documents import Documents
from candide.distributions import DISTRIBUTIONS
from candide.distributions.arrays import DistributionShape
from candide.errors import InputError, ModelFileError
from candide.events import Text
from candide.store import fitted_state as stored
from candide.tally import TokenCounts

K, D = 3, 2  # classes, features
SIZES = (3, 2)
WORDS = ["tea", "milk", "free", "prize", "call", "five", "naïve"]


def _documents(rng, n, absent=0.0):
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 6))) for _ in range(n)]
    return Documents.from_column([None if rng.random() < absent else text for text in texts])


def _text(**settings):
    def make(rng):
        event = Text(**settings)
        y = np.arange(30) % K
        return event.estimate(TokenCounts.from_rows(_documents(rng, 30), y, n_classes=K, spec=event.spec(1)))

    return make


def _heard(rng):
    base = _text(sublinear=True)(rng)
    return laws.WeightedTokens(base, rng.normal(size=base.cells.n_tokens), 0.5, rng.normal(size=base.n_classes))


def _positive(rng):
    return rng.gamma(4.0, 1.0, (K, D)) + 0.1


def _normal(rng):
    return laws.Normal(rng.normal(size=(K, D)), _positive(rng))


def _t(rng):
    return laws.StudentT(_positive(rng) + 3.0, rng.normal(size=(K, D)), _positive(rng))


def _categorical(rng):
    p = [rng.dirichlet(np.ones(n), K).T for n in SIZES]
    return laws.Categorical(
        np.log(np.vstack(p)), DistributionShape(K, D, "codes", SIZES).offsets, -1.0 - rng.random((D, K))
    )


def _bernoulli(rng):
    p = rng.random((K, D))
    return laws.Bernoulli(np.log1p(-p), np.log(p), threshold=0.3)


def _matrices(rng, n=K):
    root = rng.normal(size=(n, D, D)) + 2 * np.eye(D)
    return root @ root.transpose(0, 2, 1)


def _constant_column(rng):
    matrix = _matrices(rng)
    matrix[:, 1, 0] = matrix[:, 0, 1] = 0.0
    matrix[:, 1, 1] = 2.0
    return laws.MultivariateNormal(np.column_stack([rng.normal(size=K), np.ones(K)]), matrix, np.array([False, True]))


MAKE = {
    "normal": _normal,
    "normal of one variance": lambda rng: laws.Normal(
        rng.normal(size=(K, D)) + 1e3, np.tile(rng.random(D) + 1, (K, 1))
    ),
    "student_t": _t,
    "log_scale": lambda rng: laws.LogScale(_normal(rng)),
    "log_scale of student_t": lambda rng: laws.LogScale(_t(rng)),
    "categorical": _categorical,
    "bernoulli": _bernoulli,
    "shares of a yes": lambda rng: replace(_bernoulli(rng), threshold=None),
    "multinomial": lambda rng: laws.Multinomial(np.log(rng.dirichlet(np.ones(D), K).T), 7),
    "weights of words": lambda rng: laws.Multinomial(rng.normal(size=(D, K))),
    "dirichlet_multinomial": lambda rng: laws.DirichletMultinomial(_positive(rng), 5),
    "poisson": lambda rng: laws.Poisson(_positive(rng)),
    "negative_binomial": lambda rng: laws.NegativeBinomial(_positive(rng), _positive(rng)),
    "exponential": lambda rng: laws.Exponential(_positive(rng)),
    "lomax": lambda rng: laws.Lomax(_positive(rng) + 2.5, _positive(rng)),
    "multivariate_normal": lambda rng: laws.MultivariateNormal(rng.normal(size=(K, D)), _matrices(rng)),
    "tied": lambda rng: laws.MultivariateNormal(rng.normal(size=(K, D)), _matrices(rng, 1)),
    "a constant column": _constant_column,
    "multivariate_t": lambda rng: laws.MultivariateT(
        rng.random(K) + 5.0, rng.normal(size=(K, D)), _matrices(rng), rng.random(K) + 1.0
    ),
    "term_scores": _text(),
    "term_scores present": _text(model="bernoulli"),
    "term_scores complement": _text(model="complement", norm=True),
    "term_scores idf": _text(idf=True, sublinear=True),
    "heard_terms": _heard,
    "polya_documents": _text(model="polya"),
    "weighted": lambda rng: _t(rng).with_feature_weights(rng.random(D)),
    "weighted normal": lambda rng: _normal(rng).with_feature_weights(rng.random(D)),
    "weighted levels": lambda rng: _categorical(rng).with_feature_weights(rng.random(D)),
}
WRITTEN = {name for name in MAKE if name not in (
    "dirichlet_multinomial", "heard_terms", "negative_binomial", "lomax", "multivariate_t",
    "polya_documents", "student_t", "log_scale of student_t", "weighted")}  # fmt: skip


def block_of(law, rng, n=12):
    """Rows that the law can have, some of them absent."""
    if law.block_kind == "documents":
        return _documents(rng, n, 0.2)
    if law.block_kind == "codes":
        return rng.integers(-1, 4, (n, D)).astype(np.int32)
    y = rng.integers(0, K, n)
    try:
        x = law.sample(y, rng).astype(np.float64)
    except InputError:
        x = rng.poisson(2.0, (n, D)).astype(np.float64)
    x[rng.random(x.shape) < 0.15] = np.nan
    return x


def shape_of(law):
    tokens = getattr(law, "tokens", None)
    return DistributionShape(K, law.n_features, law.block_kind, SIZES if law.block_kind == "codes" else (), tokens)


def form_scores(form, block):
    """(row, class) the polynomial, evaluated."""
    z, absent = form.inputs(block), form.absent_mask(block)
    z = np.asarray(z.toarray() if hasattr(z, "toarray") else z)
    present = np.ones((len(z), form.constant.shape[1])) if absent is None else 1.0 - absent
    z = z if absent is None else np.nan_to_num(z)
    out = present @ form.constant.T + z @ form.weight.T
    if form.square is not None:
        out += z * z @ form.square.T if form.square.ndim == 2 else np.einsum("ri,cij,rj->rc", z, form.square, z)
    out[form.impossible_rows(block)] = -np.inf
    return out


@settings(max_examples=10, deadline=None)
@pytest.mark.parametrize("name", sorted(WRITTEN))
@given(seed=st.integers(0, 10_000))
def test_the_form_scores_as_the_distribution(name, seed):
    rng = np.random.default_rng(seed)
    distribution = MAKE[name](rng)
    block, form = block_of(distribution, rng), distribution.form()
    got, want = form_scores(form, block), distribution.log_prob(block)
    if form.constant.shape[1] < distribution.n_features:  # columns modelled together: of rows that have them all
        complete = ~np.isnan(block).any(axis=1)
        got, want = got[complete], want[complete]
    np.testing.assert_allclose(got - got[:, :1], want - want[:, :1], rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("name", sorted(set(MAKE) - WRITTEN))
def test_a_nonlinear_score_has_no_form(name):
    assert MAKE[name](np.random.default_rng(0)).form() is None


def test_the_forms_of_values_that_no_class_can_have():
    rng = np.random.default_rng(0)
    for name in ("poisson", "exponential", "log_scale"):
        assert np.isneginf(form_scores(MAKE[name](rng).form(), np.array([[-1.0, 2.0]]))).all()
    assert MAKE["log_scale"](rng).form().impossible_rows(np.array([[0.0, 2.0], [1.0, 2.0]])).tolist() == [True, False]


@settings(max_examples=10, deadline=None)
@pytest.mark.parametrize("name", MAKE)
@given(seed=st.integers(0, 10_000))
def test_weights_multiply_the_terms(name, seed):
    rng = np.random.default_rng(seed)
    law = MAKE[name](rng)
    block, weight = block_of(law, rng), rng.choice([0.0, 0.5, 1.0, 2.5], law.n_features)
    weighted = law.with_feature_weights(weight)
    want = np.where(weight == 0, 0.0, law.contributions(block) * weight)
    np.testing.assert_allclose(weighted.contributions(block), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weighted.log_prob(block), want.sum(axis=2), rtol=1e-9, atol=1e-9)
    assert not weighted.has_density
    again = weighted.with_feature_weights(weight)
    np.testing.assert_allclose(again.contributions(block), want * weight, rtol=1e-12, atol=1e-12)


def test_a_weight_of_zero_silences_what_is_impossible():
    sure = laws.Bernoulli(np.array([[0.0, -1.0]]), np.array([[-np.inf, -0.4]]))
    assert sure.with_feature_weights(np.array([0.0, 1.0])).log_prob(np.array([[1.0, 1.0]])).tolist() == [[-0.4]]


def test_weights_of_another_number_are_refused():
    with pytest.raises(InputError) as error:
        _normal(np.random.default_rng(0)).with_feature_weights(np.ones(3))
    assert error.value.remedy == "pass a finite number for each"


@pytest.mark.parametrize("name", MAKE)
def test_a_distribution_is_restored_from_its_arrays(name):
    rng = np.random.default_rng(1)
    law = MAKE[name](rng)
    arrays = {}
    packed = stored.pack_distribution(law, arrays, "0")
    assert all(a.ndim <= 2 and a.dtype in (np.float64, np.int64, np.int32, np.uint8) for a in arrays.values())
    again = stored.unpack_distribution(packed, arrays, "0", shape_of(law))
    block = block_of(law, rng)
    np.testing.assert_array_equal(again.log_prob(block), law.log_prob(block))
    assert type(again) is type(law)
    assert again.has_density == law.has_density


@pytest.mark.parametrize("name", MAKE)
def test_every_array_is_checked(name):
    """Missing, of another shape, not finite: each is refused, by name."""
    law = MAKE[name](np.random.default_rng(1))
    arrays = {}
    packed = stored.pack_distribution(law, arrays, "0")
    for key, array in arrays.items():
        changes = [None, array[:-1].copy(), array.astype(np.float32)]
        changes += [np.full_like(array, np.nan)] if array.dtype == np.float64 else []
        for change in changes:
            if (
                change is None
                and key.endswith(("length", "unit", "constant", "threshold", "unknown_scores"))
                and "matrix" not in "".join(arrays)
            ):
                continue  # it may be without
            others = {k: a for k, a in arrays.items() if k != key} | ({} if change is None else {key: change})
            with pytest.raises(ModelFileError):
                stored.unpack_distribution(packed, others, "0", shape_of(law))


def test_a_distribution_of_other_rows_is_refused():
    rng, arrays = np.random.default_rng(0), {}
    packed = stored.pack_distribution(_normal(rng), arrays, "0")
    with pytest.raises(ModelFileError, match="is of numbers, and its columns hold codes"):
        stored.unpack_distribution(packed, arrays, "0", DistributionShape(K, D, "codes", SIZES))
    with pytest.raises(ModelFileError) as error:
        stored.unpack_distribution({"name": "os.system"}, {}, "0", DistributionShape(K, D))
    assert error.value.value == "os.system"
    nested = {"name": "log_scale", "base": {"name": "poisson"}}
    with pytest.raises(ModelFileError, match="not one of all real numbers"):
        stored.unpack_distribution(nested, {"0.base.rate": np.ones((K, D))}, "0", DistributionShape(K, D))


def test_a_custom_distribution_cannot_be_saved():
    law = laws.Density(lambda x, rate: -rate * x, {"rate": np.ones((K, D))})
    with pytest.raises(InputError) as error:
        stored.pack_distribution(law, {}, "0")
    assert "detail='tally'" in error.value.remedy


def test_the_table_of_distributions_uses_their_names():
    assert {name: law.name for name, law in DISTRIBUTIONS.items()} == {name: name for name in DISTRIBUTIONS}
    voices = {"binned"}  # beside others in one model: tests/estimators
    assert {MAKE[name](np.random.default_rng(0)).name for name in MAKE} == set(DISTRIBUTIONS) - voices


@pytest.mark.parametrize(
    "name", [n for n in MAKE if "term" not in n and "documents" not in n and n != "weights of words"]
)
def test_the_mean_is_that_of_many_rows(name):
    rng = np.random.default_rng(3)
    law = MAKE[name](rng)
    drawn = np.array([law.sample(np.full(60_000, c), rng).mean(axis=0) for c in range(K)])
    spread = np.array([law.sample(np.full(2000, c), rng).std(axis=0) for c in range(K)])
    mean = law.mean()
    if np.isinf(mean).any():  # a t of the logs
        assert np.isinf(mean).all()
        return
    tails = 0.2 if name == "log_scale" else 0.05
    np.testing.assert_allclose(drawn, mean, atol=tails * max(1.0, spread.max()))


def test_the_mean_of_levels_that_are_numbers():
    law = laws.Categorical(np.log([[0.5, 0.2], [0.5, 0.8]]), np.array([0, 2]), np.zeros((1, 2)))
    assert law.mean([[10.0, 20.0]]).ravel().round(9).tolist() == [15.0, 18.0]


@pytest.mark.parametrize(
    "name", ["normal", "log_scale", "bernoulli", "poisson", "exponential", "categorical", "multinomial"]
)
def test_the_divergence_is_that_of_many_rows(name):
    rng = np.random.default_rng(5)
    a, b = MAKE[name](rng), MAKE[name](rng)
    want = np.zeros(K)
    for one, other in ((a, b), (b, a)):
        for c in range(K):
            x = one.sample(np.full(100_000, c), rng)
            want[c] += (one.log_prob(x)[:, c] - other.log_prob(x)[:, c]).mean()
    factor = a.length if name == "multinomial" else 1.0  # of one word
    got = a.divergence(b)
    assert got.shape == (K, D)
    np.testing.assert_allclose(got.sum(axis=1) * factor, want, rtol=0.05, atol=0.02)
    np.testing.assert_allclose(got, b.divergence(a), rtol=1e-12)
    np.testing.assert_array_equal(a.divergence(a), 0.0)


@pytest.mark.parametrize("name", ["student_t", "lomax", "multivariate_t", "polya_documents", "weights of words"])
def test_a_distribution_without_a_divergence_raises_an_error(name):
    law = MAKE[name](np.random.default_rng(0))
    with pytest.raises(InputError):
        law.divergence(law)


def test_what_a_person_sees():
    rng = np.random.default_rng(0)
    rows, values = _normal(rng).describe(1, ["a", "b"])
    assert (rows, values.shape) == (["mean", "sd"], (2, K))
    rows, values = MAKE["multivariate_normal"](rng).describe(0, ["a", "b"])
    assert (rows, values.shape) == (["mean", "sd", "correlation with b"], (3, K))
    rows, values = _categorical(rng).describe(0, levels=["x", "y", "z"], weights=np.array([1, 5, 2]), max_rows=2)
    assert rows == ["y", "z", "1 other level"]
    np.testing.assert_allclose(values.sum(axis=0), 1.0)
    assert MAKE["polya_documents"](rng).describe(0)[0] == []
