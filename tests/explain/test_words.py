"""Documents in pieces: joined they are the document, added up what its terms say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import candide as cd
from candide.encoding.tokens import Tokens, tokenize
from candide.explain.words import DocumentWord, HighlightedText, highlight_document, shorten_highlights
from candide.report import summary, terminal

TEXTS = ["Free prize, call now", "See you at five", "Free call", "you see, free of care"]
LABELS = ["spam", "ham", "spam", "ham"]


@given(
    text=st.text("ab cİΣ. ", max_size=40),
    tokens=st.sampled_from(
        [Tokens(ngrams=(1, 2)), Tokens(analyzer="char", ngrams=(1, 3)), Tokens(analyzer="char_wb", ngrams=(2, 4))]
    ),
    weights=st.lists(st.floats(-5, 5), min_size=7, max_size=7),
)
def test_pieces_join_to_the_document_and_add_up_to_its_terms(text, tokens, weights):
    terms = sorted(set(tokenize(text, tokens)))
    words = [DocumentWord(term, 1, weights[i % 7]) for i, term in enumerate(terms)]
    found = highlight_document(text, words, tokens)
    assert "".join(mark.text for mark in found) == text
    assert sum(mark.log_odds for mark in found) == pytest.approx(sum(word.log_odds for word in words), abs=1e-9)


def test_log_odds_are_divided_among_occurrences_and_words():
    words = [DocumentWord("free", 2, 3.0), DocumentWord("free prize", 1, 1.0)]
    pieces = highlight_document("Free prize, FREE!", words, Tokens(ngrams=(1, 2)))
    assert [(piece.text, piece.log_odds) for piece in pieces] == [
        ("Free", 2.0), (" ", 0.0), ("prize", 0.5), (", ", 0.0), ("FREE", 1.5), ("!", 0.0),
    ]  # fmt: skip


def test_a_long_document_is_cut_to_what_surrounds_its_strongest_words():
    pieces = [HighlightedText("so ", 0.0)] * 99 + [HighlightedText("free", 2.0)] + [HighlightedText(" so", 0.0)] * 99
    assert shorten_highlights(pieces, 1000) == pieces
    text = "".join(piece.text for piece in shorten_highlights(pieces, 160))
    assert text.startswith(" ... so so s")
    assert "free" in text


def test_of_hashed_terms_no_place_is_known():
    assert [
        mark.log_odds for mark in highlight_document("free prize", [DocumentWord("hashed 3", 1, 2.0)], Tokens(bits=8))
    ] == [0.0]


def test_a_decision_shows_the_contribution_of_each_token():
    model = cd.TextNB(weights=None).fit(TEXTS, LABELS)
    [decision] = model.explain(["FREE prize; unheard"])
    [said] = decision.contributions
    by_text = {mark.text: mark.log_odds for mark in said.highlights}
    by_term = {word.word: word.log_odds for word in said.words}
    assert by_text["FREE"] == pytest.approx(by_term["free"])
    assert by_text["prize"] == pytest.approx(by_term["prize"])
    assert by_text["; unheard"] == 0.0


def printed(document, monkeypatch, capsys, colours):
    model = cd.TextNB(weights=None).fit(TEXTS, LABELS)
    monkeypatch.setenv("FORCE_COLOR" if colours else "NO_COLOR", "1")
    monkeypatch.delenv("NO_COLOR" if colours else "FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal.print_summary(summary.DecisionSummary(1, None, model.explain([document])[0]))
    return capsys.readouterr().out


def test_a_terminal_shows_the_words_in_colours(monkeypatch, capsys):
    out = printed("a FREE prize\x1b[2J call now", monkeypatch, capsys, True)
    assert "\x1b[1;32mFREE\x1b[0m" in out or "\x1b[32mFREE\x1b[0m" in out
    assert "\x1b[2J" not in out  # a document moves no cursor


def test_without_colours_the_document_is_not_repeated(monkeypatch, capsys):
    assert printed("FREE prize", monkeypatch, capsys, False).count("FREE") == 1


def test_of_a_long_document_the_largest_contributions_are_shown(monkeypatch, capsys):
    out = printed("so " * 5000 + "FREE prize " + "so " * 5000, monkeypatch, capsys, True)
    assert "FREE" in out
    assert len(out) < 3000
