"""Text in files: weights without counts, counts that are read when they are used, and the same bytes in any order."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from tests.model_cases import MODELS, TEXTS

import candide as cd
from candide import store
from candide.data.labels import Labels
from candide.errors import InputError, ModelFileError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.tally import TokenCounts

NAMES = [name for name in MODELS if name.startswith("text")]
DOCUMENTS = ["Free prize, call now", "See you at five", "free CALL é", "", None, "🙂 five words"] * 7
LABELS = ["a", "b", "c"] * 14


@pytest.mark.parametrize("name", NAMES)
def test_a_score_file_holds_no_counts_and_can_be_saved_again(name, tmp_path):
    model, X = MODELS[name]
    model.save(tmp_path / "s", detail="score")
    scorer = store.load(tmp_path / "s")
    assert not scorer.has_counts
    assert scorer.n_rows is None
    with pytest.raises(InputError, match="has no counts"):
        scorer.counts  # noqa: B018
    again = cd.load(tmp_path / "s")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    again.save(tmp_path / "s2", detail="score")
    assert (tmp_path / "s").read_bytes() == (tmp_path / "s2").read_bytes()


def test_no_count_of_a_word_stands_in_a_score_file(tmp_path):
    texts = ["prize " * 37] * 11 + ["tea"] * 23
    model = cd.TextNB(weights=None).fit(texts, ["spam"] * 11 + ["ham"] * 23)
    model.save(tmp_path / "tally")
    model.save(tmp_path / "score", detail="score")
    for count in (37.0 * 11, 11.0, 23.0, 34.0):
        number = np.array([count]).tobytes()
        assert number in (tmp_path / "tally").read_bytes() or count == 34.0
        assert number not in (tmp_path / "score").read_bytes()


@pytest.mark.parametrize("detail", store.DETAILS)
@pytest.mark.parametrize("settings", TEXTS.values(), ids=list(TEXTS))
def test_the_order_of_documents_leaves_no_trace(settings, detail, tmp_path):
    order = np.random.default_rng(0).permutation(len(DOCUMENTS))
    forth = cd.TextNB(**settings, weights=None).fit(DOCUMENTS, LABELS)
    back = cd.TextNB(**settings, weights=None).fit([DOCUMENTS[i] for i in order], [LABELS[i] for i in order])
    if not settings.get("sublinear"):  # sums of logarithms depend on their order in the last digit
        forth.save(tmp_path / "a", detail=detail)
        back.save(tmp_path / "b", detail=detail)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("settings", TEXTS.values(), ids=list(TEXTS))
def test_weighted_documents_are_scored_bit_equally_after_loading(settings, tmp_path):
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(300)]
    texts = [" ".join(rng.choice(words, 30)) for _ in range(200)]
    model = cd.TextNB(**settings, weights=None).fit(texts, rng.integers(0, 3, 200), sample_weight=rng.random(200))
    for detail in store.DETAILS:
        model.save(tmp_path / "m", detail=detail)
        np.testing.assert_array_equal(cd.load(tmp_path / "m").predict_proba(texts), model.predict_proba(texts))


def test_a_mapped_vocabulary_is_read_when_it_is_used(tmp_path):
    model, X = MODELS["text-open"]
    model.save(tmp_path / "m")
    mapped = store.load(tmp_path / "m", read_whole=100)
    [tally] = mapped.counts.tallies
    assert "word" not in vars(tally)
    assert tally.n.tolist() == model.counts_.tallies[0].n.tolist()
    base = tally.word
    while isinstance(base, np.ndarray):
        base = base.base
    assert type(base.obj).__name__ == "mmap"
    np.testing.assert_array_equal(cd.TextNB.from_fitted(mapped).predict_proba(X), model.predict_proba(X))
    fresh = store.load(tmp_path / "m", read_whole=100)
    whole = (model + model).counts_.tallies[0].class_counts("free")
    assert (fresh + fresh).counts.tallies[0].class_counts("free") == whole
    assert (
        pickle.loads(pickle.dumps(store.load(tmp_path / "m", read_whole=100).counts.tallies[0])).token_texts()
        == tally.token_texts()
    )


@pytest.mark.parametrize("name", ["0.starts", "0.word", "0.total", "0.classes", "0.letters"])
def test_damage_in_a_mapped_vocabulary_is_found_before_it_is_used(name, tmp_path):
    from candide.store import container

    model, X = MODELS["text-open"]
    model.save(tmp_path / "m")
    header, arrays = container.unpack_container(memoryview((tmp_path / "m").read_bytes()), verify=True)
    bad = arrays[name].copy()
    bad[0 if name == "0.letters" else len(bad) // 2] = np.nan if bad.dtype == float else 200
    (tmp_path / "m").write_bytes(
        b"".join(bytes(piece) for piece in container.pack_container(header, {**arrays, name: bad}))
    )
    with pytest.raises(ModelFileError):
        store.load(tmp_path / "m")
    mapped = store.load(tmp_path / "m", read_whole=100)
    for _ in range(2):  # and every time
        with pytest.raises(ModelFileError):
            cd.TextNB.from_fitted(mapped).predict_proba(X)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("starts", lambda a: a[::-1].copy()),
        ("starts", lambda a: a + 1),
        ("ends", lambda a: a[:-1].copy()),
        ("ends", lambda a: a + 1),
        ("column", lambda a: a + 3),
        ("column", lambda a: a - 1),
        ("column", lambda a: np.zeros_like(a)),
        ("value", lambda a: a * np.nan),
        ("value", lambda a: a[:-1].copy()),
        ("letters", lambda a: a[::-1].copy()),
        ("letters", lambda a: np.full_like(a, 97)),
        ("shared", lambda a: a[:-1].copy()),
        ("shared", lambda a: np.full_like(a, np.inf)),
        ("common", lambda a: a[:-1].copy()),
    ],
)
def test_weights_that_are_none_are_refused(name, change, tmp_path):
    from candide.store import container

    model, _ = MODELS["text-complement"]
    model.save(tmp_path / "m", detail="score")
    header, arrays = container.unpack_container(memoryview((tmp_path / "m").read_bytes()), verify=True)
    arrays[f"0.{name}"] = change(arrays[f"0.{name}"])
    (tmp_path / "m").write_bytes(b"".join(bytes(piece) for piece in container.pack_container(header, arrays)))
    with pytest.raises(ModelFileError):
        store.load(tmp_path / "m")


def test_loading_a_mapped_model_takes_little_memory(tmp_path):
    n, k, path = 1 << 20, 4, str(tmp_path / "m")
    letters = np.arange(n, dtype=">u4").view(np.uint8)  # the numbers of the buckets in the order of their bytes
    cells = np.linspace(0, n, k + 1).astype(np.int64), np.arange(n, dtype=np.int32), np.full(n, 2.0), np.full(n, 1.0)
    tally = TokenCounts(np.full((k, 1), 1e6), np.full((k, 1), 2.0 * n), letters, np.arange(0, 4 * n + 1, 4), *cells)
    plan = Plan(("text",), (PlanPart(cd.events.Text(bits=20), ("text",)),))
    store.save(FittedModel(ModelCounts(plan, Labels(tuple(range(k))), np.full(k, 1e6), (tally,), n)), path)
    code = f"""
import re
from candide import store
from candide.tally import token_counts
def resident(): return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = resident()
fitted = store.load({path!r}, read_whole=0)
print(resident() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < os.path.getsize(path) / 8


def test_what_is_shown_of_weights_are_the_shares_of_telling_words(tmp_path):
    from candide.explain.columns import iterate_conditionals

    texts = ["free prize now"] * 3 + ["see you now"] * 2
    model = cd.TextNB(weights=None).fit(texts, ["spam"] * 3 + ["ham"] * 2)
    model.save(tmp_path / "m", detail="score")
    [given] = iterate_conditionals(store.load(tmp_path / "m"), 4)
    assert given.row_names == ["see", "you", "free", "prize"]
    np.testing.assert_allclose(given.values, [[3 / 11, 1 / 14]] * 2 + [[1 / 11, 4 / 14]] * 2)
