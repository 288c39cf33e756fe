"""What TextNB refuses: documents that were never counted, a density where there is none; and what one class leaves."""

import pytest

import candide as cd
from candide.errors import InputError, NotCountedError
from candide.explain.words import document_words

TEXTS = ["free prize call now", "see you at five then", "free call for you all", "so much for that, you see"]
SAID = ["spam", "ham", "spam", "ham"]


@pytest.mark.parametrize("settings", [{}, {"bits": 8}, {"bits": 8, "signed": True}, {"sublinear": True}], ids=str)
@pytest.mark.parametrize(
    "text", ["free free free", "free", "prize prize call now", "", "free prize call now at", "call now free prize free"]
)
def test_documents_that_were_never_counted_cannot_be_taken_away(settings, text):
    model = cd.TextNB(**settings).fit(TEXTS[:2], SAID[:2])
    before = model.predict_proba(TEXTS)
    with pytest.raises(NotCountedError, match=r"class 'spam': .* removed than") as error:
        model.forget([text], ["spam"])
    assert error.value.column == "text"
    assert (model.predict_proba(TEXTS) == before).all()


@pytest.mark.parametrize("settings", [{}, {"bits": 8, "signed": True}, {"sublinear": True}], ids=str)
def test_more_of_a_term_than_is_left_cannot_be_taken_away(settings):
    model = cd.TextNB(**settings).fit(TEXTS, SAID)
    with pytest.raises(NotCountedError, match=r"class 'spam': .* removed than") as error:
        model.forget(["free " * 9], ["spam"])
    assert error.value.column == "text"
    for i in (2, 0, 3, 1):
        model.forget(TEXTS[i : i + 1], SAID[i : i + 1])
    assert model.counts_.tallies[0].n_tokens == 0


def test_complement_has_no_density():
    model = cd.TextNB("complement").fit(TEXTS, SAID)
    with pytest.raises(InputError, match="TextNB has no density"):
        model.log_density(TEXTS)
    assert model.predict_table({"text": TEXTS})["log_density"].to_pylist() == [None] * 4
    assert cd.TextNB().fit(TEXTS, SAID).log_density(TEXTS).max() < 0


def test_of_one_class_no_word_decided():
    model = cd.TextNB().partial_fit(TEXTS[:1], SAID[:1])
    assert document_words(model.fitted_, "free prize") == []
    assert [w.word for w in document_words(cd.TextNB().fit(TEXTS, SAID).fitted_, "free prize", limit=1)] == ["free"]
