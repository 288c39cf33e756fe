"""Text as one column among others: in frames, and in any table source."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.model_selection import StratifiedKFold
from tests import tables

import candide as cd
from candide.engines.duckdb import formats
from candide.errors import InputError, MergeError, UnknownNameError
from candide.events import Text
from candide.explain.terms import list_terms
from candide.explain.words import document_words
from candide.fit_source import fit_model
from candide.report import summary
from candide.store.update import count_like
from candide.validation.cross_validation import cross_validate
from candide.validation.evaluation import evaluate


def made(n=1200, seed=0):
    """Three weak document_terms of one class: words, a number and a category, each right about two times in three."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)

    def leaning(share):
        return np.where(rng.random(n) < share, y, 1 - y)

    words = np.array(["invoice due please pay the amount", "lunch on friday with all of us"])
    fill = np.array([f"note number {i} of the day" for i in range(n)])
    return {
        "body": [f"{fill[i]} {words[w]}" for i, w in enumerate(leaning(0.72))],
        "hour": y * 1.0 + rng.normal(size=n),
        "sender": np.array(["shop", "friend"])[leaning(0.7)].tolist(),
        "title": [f"re {words[w]} {i}" for i, w in enumerate(leaning(0.72))],
    }, np.array(["bill", "meeting"])[y]


def test_the_product_of_weak_columns_is_strong():
    X, y = made()
    half = len(y) // 2
    events = {"body": Text("bernoulli", min_count=5), "title": Text("bernoulli", min_count=5)}

    def accuracy(names):
        chosen = {name: event for name, event in events.items() if name in names}
        train, test = ({n: X[n][s] for n in names} for s in (slice(0, half), slice(half, None)))
        model = cd.NaiveBayes(events=chosen).fit(train, y[:half])
        return (model.predict(test) == y[half:]).mean()

    alone = [accuracy([name]) for name in X]
    assert max(alone) < 0.78
    assert accuracy(list(X)) > max(alone) + 0.06


def traits(text):
    """What a message looks like, whatever its words: numbers and categories."""
    size = np.array([max(len(t), 1) for t in text], float)
    return {
        "length": size,
        "digits": np.array([sum(map(str.isdigit, t)) for t in text]) / size,
        "capitals": np.array([sum(map(str.isupper, t)) for t in text]) / size,
        "exclaims": np.array(["!" in t for t in text]),
        "money": np.array(["£" in t or "$" in t for t in text]),
        "link": np.array(["www" in t.lower() or "http" in t.lower() for t in text]),
    }


def test_words_and_form_of_real_messages_are_better_together():
    table = pq.read_table(tables.corpus("sms_spam"))
    text, y = np.array(table["text"].to_pylist(), object), np.array(table["class"].to_pylist())
    columns = {"text": text, **traits(text)}

    def accuracy(names):
        found = []
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
            few = train[:400]  # with all of them the words alone know nearly everything
            events = {"text": Text()} if "text" in names else "auto"
            model = cd.NaiveBayes(events=events).fit({n: columns[n][few] for n in names}, y[few])
            found.append((model.predict({n: columns[n][test] for n in names}) == y[test]).mean())
        return np.mean(found)

    words, looks, both = accuracy(["text"]), accuracy(list(traits(text))), accuracy(list(columns))
    assert 0.95 < words < 0.98
    assert 0.95 < looks < 0.98
    assert both > max(words, looks) + 0.005


def test_each_column_of_text_is_a_block_of_its_own():
    X, y = made(60)
    model = cd.NaiveBayes(events={"title": Text(ngrams=(1, 2)), "body": Text()}).fit(X, y)
    parts = {part.columns: part.event.name for part in model.counts_.plan.parts}
    assert parts == {("body",): "text", ("title",): "text", ("hour",): "gaussian", ("sender",): "categorical"}
    auto = cd.NaiveBayes().fit(X, y)  # free text is recognised
    assert {part.columns for part in auto.counts_.plan.parts if part.event.name == "text"} == {("body",), ("title",)}


def test_top_terms_of_each_column_of_text():
    X, y = made(200)
    model = cd.NaiveBayes(events={"title": Text(), "body": Text(bits=16)}).fit(X, y)
    alone = cd.TextNB(weights=None).fit(X["title"], y)
    assert model.top_words("bill", 3, column="title") == alone.top_words("bill", 3)
    assert all(top.word.startswith("bucket ") for top in model.top_words("bill", 3, column="body"))
    with pytest.raises(UnknownNameError, match="Known: body, title"):
        model.top_words("bill")
    with pytest.raises(UnknownNameError) as error:
        model.top_words("spam", column="title")
    assert error.value.value == "spam"
    with pytest.raises(InputError, match="no column of text"):
        cd.NaiveBayes().fit({"hour": X["hour"]}, y).top_words("bill")


def test_the_joint_is_the_sum_of_the_columns():
    X, y = made(200)
    whole = cd.NaiveBayes(events={"body": Text()}).fit({"body": X["body"], "hour": X["hour"]}, y)
    text = cd.TextNB(weights=None).fit(X["body"], y)
    number = cd.NaiveBayes().fit({"hour": X["hour"]}, y)
    prior = np.log(np.unique(y, return_counts=True)[1] / len(y))
    want = text.predict_joint_log_proba(X["body"]) + number.predict_joint_log_proba({"hour": X["hour"]}) - prior
    got = whole.predict_joint_log_proba({"body": X["body"], "hour": X["hour"]})
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_every_kind(frame):
    X, y = made(80)
    X = {name: list(values) for name, values in X.items()}
    X["body"][3] = None
    want = cd.NaiveBayes().fit(X, y)
    got = cd.NaiveBayes().fit(frame(X), y)
    np.testing.assert_allclose(got.predict_proba(frame(X)), want.predict_proba(X), rtol=1e-12)


def test_a_missing_document_contributes_nothing():
    X, y = made(80)
    model = cd.NaiveBayes().fit({"body": X["body"], "hour": X["hour"]}, y)
    number = cd.NaiveBayes().fit({"hour": X["hour"]}, y)
    p = model.predict_proba({"body": [None, None], "hour": [0.0, 1.0]})
    np.testing.assert_allclose(p, number.predict_proba({"hour": [0.0, 1.0]}), rtol=1e-12)


def test_parts_of_a_mixed_table_add_up():
    X, y = made(90)
    whole = cd.NaiveBayes().fit(X, y)
    parts = [cd.NaiveBayes().fit({n: v[s] for n, v in X.items()}, y[s]) for s in (slice(0, 40), slice(40, 90))]
    for other in (parts[0] + parts[1], parts[0] + parts[1] + parts[0] - parts[0]):
        np.testing.assert_allclose(other.predict_proba(X), whole.predict_proba(X), rtol=1e-9)


# Sources --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [Text(ngrams=(1, 2)), Text(analyzer="char_wb")], ids=["pairs", "characters"])
@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "jsonl"])
def test_any_source_counts_what_arrays_count(tmp_path, ending, event):
    X, y = made(300)
    frame = pd.DataFrame({**X, "kind": y})
    path = tmp_path / f"mail.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    learned = fit_model(str(path), "kind", events={"body": event}, model="naive")
    want = cd.NaiveBayes(events={"body": event}).fit(X, y)
    assert learned.fitted.counts.n_rows == 300
    scored = cd.predict_table(learned.fitted, str(path))
    np.testing.assert_allclose(scored["p_bill"].to_numpy(), want.predict_proba(X)[:, 0], rtol=1e-7, atol=1e-12)
    more = count_like(learned.fitted, str(path))
    assert (learned.fitted.counts + more).class_weight.sum() == 600


def test_folds_of_a_table_are_counted_apart():
    X, y = made(600)
    validation = cross_validate({**X, "kind": y.tolist()}, "kind", folds=5, model="naive")
    assert validation.total.n == 600
    assert validation.total.metrics()["accuracy"] > 0.75
    assert validation.fit_result.fitted.counts.n_rows == 600


def test_free_text_is_recognised_in_a_real_table():
    learned = fit_model(tables.corpus("sms_spam"), "class", drop=["split"], model="naive")
    assert [(c.name, c.kind) for c in learned.columns] == [("text", "text")]
    table = pq.read_table(tables.corpus("sms_spam"))
    want = cd.TextNB(weights=None).fit(table["text"], table["class"].to_pylist())
    assert learned.fitted.counts.tallies[0].n_tokens == want.counts_.tallies[0].n_tokens
    scores = evaluate(learned.fitted, tables.corpus("sms_spam"))
    assert scores.metrics()["accuracy"] == pytest.approx(want.score(table["text"], table["class"].to_pylist()))


def test_a_column_of_numbers_is_not_a_column_of_documents():
    with pytest.raises(InputError, match=r"is not a document"):
        cd.NaiveBayes(events={"hour": Text()}).fit({"hour": [1.0, 2.0]}, ["a", "b"])


# Folders and the command line -----------------------------------------------------------------------------------------


@pytest.fixture
def mail(tmp_path):
    root = tmp_path / "mail"
    for kind, words in (("ham", "see you at lunch"), ("spam", "free prize call now")):
        for i in range(4):
            (root / kind / "deep").mkdir(parents=True, exist_ok=True)
            (root / kind / (f"{i}.txt" if i % 2 else f"deep/{i}")).write_text(f"{words} {i}")
    return root


def test_a_folder_of_folders_is_a_table_of_documents(mail):
    model = cd.fit(str(mail), target="class", model="naive")
    assert model.counts_.class_weight.tolist() == [4.0, 4.0]
    assert model.predict({"text": ["free lunch call", "see you"]}).tolist() == ["spam", "ham"]


def test_files_of_another_encoding(mail):
    (mail / "ham" / "x").write_bytes("café".encode("latin-1"))
    with pytest.raises(InputError, match=r"ham/x: .* at byte 3, read as utf-8; pass another encoding"):
        cd.fit(str(mail), target="class", model="naive")
    for reading, word in (({"encoding": "latin-1"}, "café"), ({"errors": "ignore"}, "caf")):
        assert word in cd.fit(str(mail), target="class", **reading, model="naive").counts_.tallies[0].token_texts()


def test_files_are_read_some_at_a_time_and_as_often_as_they_are_asked_for(mail, monkeypatch):
    want = cd.fit(str(mail), target="class", model="naive").counts_
    monkeypatch.setattr(formats, "_BATCH_FILES", 3)
    files = formats.DocumentFolder(mail)
    rows = pa.table(files)
    assert [len(chunk) for chunk in rows["text"].chunks] == [3, 3, 2]
    assert rows == pa.table(files)
    got = cd.fit(str(mail), target="class", model="naive").counts_
    assert sorted(got.tallies[0].token_texts()) == sorted(want.tallies[0].token_texts())
    assert got.n_rows == 8


def test_folders_of_tables_stay_tables(tmp_path):
    for year in ("2023", "2024"):
        (tmp_path / year).mkdir()
        pq.write_table(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), tmp_path / year / "part.parquet")
    assert cd.fit(str(tmp_path), target="y", model="naive").counts_.n_rows == 4


def test_one_document_from_the_command_line(mail, tmp_path):
    def candide(*arguments):
        code = [sys.executable, "-m", "candide", *arguments]
        return subprocess.run(code, capture_output=True, text=True, check=False)

    model = str(tmp_path / "mail.candide")
    assert candide("fit", str(mail), "--target", "class", "--model", "naive", "-o", model).returncode == 0
    facts = json.loads(candide("predict", model, "--text", "A free, free lunch!", "--json").stdout)
    assert facts["prediction"] == "spam"
    assert sum(facts["probabilities"].values()) == pytest.approx(1.0)
    fitted = cd.load(model)
    want = {t: np.log(5 / (16 + 8)) - np.log(1 / (16 + 8)) for t in ("free",)}
    assert facts["words"][0] == {"word": "free", "count": 2.0, "log_odds": pytest.approx(2 * want["free"])}
    assert facts["words"][1] == {"word": "lunch", "count": 1.0, "log_odds": pytest.approx(-want["free"])}
    assert fitted.predict({"text": ["A free, free lunch!"]}).tolist() == ["spam"]
    assert "spam" in candide("predict", model, "--text", "free").stdout
    assert "prize" in candide("show", model).stdout
    none = candide("predict", model)
    assert (none.returncode, none.stderr) == (1, "candide: pass DATA, or one document with --text\n")


_WORDS = ["call", "me", "now", "free", "prize", "lunch", "today", "meet", "later", "at", "the", "station", "with"]


def _messages(n, words=6, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(_WORDS, words)) + f" {i}" for i in range(n)]


def _chinese(n, letters=12):
    rng = np.random.default_rng(1)
    return ["".join(rng.choice(list("今天天气很好我们去公园散步回家"), letters)) for _ in range(n)]


def _through(entry_point, values, path):
    """The event of a column, and the remarks on it, with the two classes in turn."""
    table = pa.table({"said": values, "y": ["a", "b"] * (len(values) // 2)})
    if entry_point == "arrays":
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = cd.BayesClassifier().fit({"said": np.array(values, object)}, table["y"].to_pylist())
        remarks = [one.message.note for one in told if hasattr(one.message, "note")]
        return model.fitted_.plan.parts[0].event.name, remarks
    if entry_point == "csv":
        table.to_pandas().to_csv(path / "rows.csv", index=False)
        data = path / "rows.csv"
    else:
        pq.write_table(table, path / "rows.parquet")
        data = path / "rows.parquet"
    learned = fit_model(data, "y")
    return learned.fitted.plan.parts[0].event.name, learned.notes


@pytest.mark.parametrize("entry_point", ["arrays", "csv", "parquet"])
@pytest.mark.parametrize(
    ("values", "event", "asked"),
    [
        (_messages(14), "text", ""),
        (_messages(45) * 2, "text", "--event said=categorical"),  # each twice
        (_chinese(30), "text", ""),
        (_messages(6), "categorical", "--event said=text"),
        (_messages(12) * 5, "categorical", "--event said=text"),
        (_messages(5) * 12, "categorical", ""),
        (["American Indian or Alaska Native", "Black or African American"] * 30, "categorical", ""),
    ],
)
def test_what_is_text_through_every_entry_point(entry_point, values, event, asked, tmp_path):
    found, remarks = _through(entry_point, values, tmp_path)
    told = [one for one in remarks if one.code == "text-or-category"]
    assert found == event
    assert [one.column for one in told] == (["said"] if asked else [])
    assert all(asked in one.remedy for one in told)


@pytest.mark.parametrize("entry_point", ["arrays", "csv", "parquet"])
def test_titles_that_are_all_different_say_how_to_count_them(entry_point, tmp_path):
    with pytest.raises(InputError, match=r"'said' can be modelled: every value is different") as error:
        _through(entry_point, _messages(40, words=2), tmp_path)
    assert "--event said=text" in error.value.remedy


@pytest.mark.parametrize("model", ["naive", "bayes"])
def test_a_model_that_took_text_for_categories_says_how_to_count_it(model):
    rows = {"size": ["big", "small", "big"] * 2, "said": _messages(6), "y": ["a", "b"] * 3}
    with pytest.raises(InputError, match="no column of text") as error:
        summary.summarize_text(fit_model(rows, "y", model="naive").fitted, "free prize")
    assert "--event said=text" in error.value.remedy
    with pytest.raises(InputError, match="no column of text") as error:
        summary.summarize_text(
            fit_model({"n": [1.5, 2.5] * 9, "y": ["a", "b"] * 9}, "y", model=model).fitted, "free prize"
        )
    assert not error.value.remedy


def test_the_words_that_decided_name_both_classes():
    texts, y = ["free prize", "lunch today", "rain and wind"] * 4, ["spam", "friend", "weather"] * 4
    found = summary.summarize_text(
        cd.TextNB(weights=None, class_prior=[0.5, 0.3, 0.2]).fit(texts, y), "free lunch prize"
    )
    assert (found.prediction, found.runner_up) == ("spam", "friend")
    assert "Words that decided for spam over friend" in str(found)
    two = summary.summarize_text(cd.TextNB(weights=None).fit(texts[:2], y[:2]), "free prize")
    assert "Words that decided for spam\n" in str(two)


@pytest.mark.parametrize("signed", [False, True])
def test_hashed_terms_have_one_name(signed):
    texts, y = _messages(40), ["a", "b"] * 20
    model = cd.TextNB(bits=16, signed=signed, weights=None).fit(texts, y)
    best = {top.word for top in model.top_words("a", 10_000)} | {top.word for top in model.top_words("b", 10_000)}
    decided = {one.word for one in document_words(model.fitted_, texts[0], limit=100)}
    assert len(decided) > 3
    assert decided <= best


def test_a_column_of_text_is_as_strong_in_the_file_as_before(tmp_path):
    model = cd.BayesClassifier().fit({"said": _messages(60)}, ["a", "b"] * 30)
    model.save(tmp_path / "said.candide")
    assert (
        list_terms(cd.load(tmp_path / "said.candide").fitted_)[0].importance == list_terms(model.fitted_)[0].importance
    )


def test_models_that_count_text_otherwise_are_described_in_a_sentence():
    rows = {"said": _messages(20), "y": ["a", "b"] * 10}
    one, other = (
        fit_model(rows, "y", model="naive", events={"said": event}).fitted for event in ("text", "categorical")
    )
    with pytest.raises(MergeError, match=r"^column 'said' is counted as Text.* and column 'said' is counted as Cat"):
        one.counts + other.counts
