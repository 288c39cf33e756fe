"""Where terms stand: the same terms as counted, each where it is read."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide.encoding.tokens import Tokens, locate_tokens, tokenize

TOKENS = [
    Tokens(),
    Tokens(ngrams=(1, 3), lowercase=False),
    Tokens(analyzer="char", ngrams=(1, 4)),
    Tokens(analyzer="char_wb", ngrams=(3, 5)),
    Tokens(stop_words=("the", "of"), ngrams=(2, 2), max_token_length=5),
    Tokens(pattern=r"[a-z]+(\d)", ngrams=(1, 2)),
    Tokens(pattern=r"of|(\w)"),
]
TEXTS = st.text(
    st.one_of(st.sampled_from("the of aB1Σİßﬁǅ \t\n."), st.characters(exclude_categories=["Cs"])), max_size=60
)


@pytest.mark.parametrize("tokens", TOKENS, ids=str)
@given(text=TEXTS)
def test_the_terms_are_those_that_are_counted(tokens, text):
    found = list(locate_tokens(text, tokens))
    assert Counter(term for term, _ in found) == Counter(tokenize(text, tokens))
    assert all(0 <= start <= end <= len(text) for _, spans in found for start, end in spans)


@given(text=st.text("abc XYZ12,.", max_size=60))
def test_at_its_place_stands_the_term(text):
    for term, spans in locate_tokens(text, Tokens(ngrams=(1, 2))):
        assert " ".join(text[start:end].lower() for start, end in spans) == term
