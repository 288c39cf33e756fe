"""TextNB: documents in, classes out."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from candide.data import notes
from candide.data.blocks import Floats
from candide.data.documents import Documents
from candide.data.labels import Labels
from candide.data.notes import Note
from candide.data.table import Name, Table
from candide.engines.table_formats import NO_FORMATS, ColumnTextFormats
from candide.errors import InputError, unknown_name_error
from candide.estimators.naive_bayes import NaiveBayes
from candide.estimators.weighted import WeightedClassifier
from candide.events import Text
from candide.events.text import CHARACTER_TEXT, DEFAULT_TEXT
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.model.settings import Settings
from candide.priors import Dirichlet

_COLUMN = "text"


class TextNB(WeightedClassifier):
    """Naive Bayes of documents: counts their terms class by class, with no document-term matrix.

    Takes a list, an array, a pandas, polars or Arrow column of text (or of UTF-8 bytes); None is a document that says
    nothing. A document may also be a list of words, or of word numbers.

    Each term, a word or a pair of words, has a weight, learned from what it says of documents that it has not counted:
    so what words say twice is not counted twice, and probabilities can be believed. ``weights=None`` is naive Bayes,
    and predicts what scikit-learn's ``CountVectorizer`` and ``MultinomialNB`` predict.

    Parameters
    ----------
    weights : "auto", "learned" or None
        "auto": learned, where the model is multinomial, without ``idf`` or ``signed``.
    model : "multinomial", "bernoulli", "complement" or "polya"
        Whether each occurrence of a term counts, or its presence and absence, or how little a document resembles the
        other classes, or repeats less than first occurrences.
    ngrams : (shortest, longest) run of words, or of characters, that is a term
        None: words, and pairs of words where weights are learned; characters; of "char_wb" 3 to 5 characters.
    analyzer : "word", "char" or "char_wb"
        Whether terms are runs of words, of characters, or of characters within a word with a blank at both its ends:
        for languages without spaces, for names, for short and noisy text.
    lowercase : whether capitals are small letters
    stop_words : words left out, or "english" for scikit-learn's list; common words have small weights without it
    max_token_length : longer words are left out
    pattern : an own regular expression for words; slower
    errors : "strict", "replace" or "ignore": the rule for bytes that are no UTF-8
    characters : True: runs of characters within words are heard beside the words, with weights of their own; False:
        they are not; None: where words have weights, where documents are short, and where documents held out say so
    bits : terms are hashed into 2**bits buckets, for constant memory; 0 for an open vocabulary
    signed : a hashed term is counted with the sign of its hash
    sublinear : n occurrences in a document count 1 + log n; None: where weights are learned
    idf : terms of few documents weigh more
    norm : complement: divide by a class's sum of weights
    min_count, min_share, max_share : leave out terms by their count or by the share of documents that have them;
        chosen after the counting, as are ``model``, ``idf``, ``norm`` and ``alpha``
    min_documents : leave out terms that fewer documents have; None: where weights are learned, of more than 50
        documents, pairs of words that one document has alone (and such hashed terms, and runs of characters)
    alpha : imaginary occurrences of every term in every class; None: 1/2 where weights are learned, else 1
    class_prior : "auto" (the shares of the documents; none for "complement"), or as in :class:`NaiveBayes`
    estimate : "mean", "map" or "mle"; with learned weights "mean"
    select_options : whether to choose, by documents held out, how words with weights are heard: with pairs or without,
        each occurrence or 1 + log n, by which power of the length, with weights that are held how tightly, or none;
        None: of 100 to 1,000 documents; of fewer it is never chosen
    rows : how many documents the weights are learned from, at most, and fewer of long ones; the counts are of all
    random_state : which documents these are, where there are more

    Examples
    --------
    >>> import candide as cd
    >>> model = cd.TextNB().fit(["Free prize, call now", "See you at five", "Free call"], ["spam", "ham", "spam"])
    >>> model.predict(["a free prize", "see you"]).tolist()
    ['spam', 'ham']
    >>> [(t.word, t.count, t.other_count) for t in model.top_words("spam", 2)]
    [('call', 2.0, 0.0), ('free', 2.0, 0.0)]
    >>> more = cd.TextNB().partial_fit(["you won a prize"], ["spam"])
    >>> (model + more).counts_.class_weight.tolist()
    [1.0, 3.0]
    """

    _record_name = "TextNB"
    _record_defaults = MappingProxyType({"weights": None})

    def __init__(
        self,
        model: str = "multinomial",
        *,
        weights: str | None = "auto",
        ngrams: tuple[int, int] | None = None,
        analyzer: str = "word",
        lowercase: bool = True,
        stop_words: Any = (),
        max_token_length: int | None = None,
        pattern: str | None = None,
        errors: str = "strict",
        characters: bool | None = None,
        bits: int = 0,
        signed: bool = False,
        sublinear: bool | None = None,
        idf: bool = False,
        norm: bool = False,
        min_count: float = 0.0,
        min_share: float = 0.0,
        max_share: float = 1.0,
        min_documents: float | None = None,
        alpha: float | None = None,
        class_prior: Any = "auto",
        estimate: str = "mean",
        select_options: bool | None = None,
        sample_rows: int = 100_000,
        random_state: int = 0,
    ):
        self.model = model
        self.weights = weights
        self.ngrams = ngrams
        self.analyzer = analyzer
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.max_token_length = max_token_length
        self.pattern = pattern
        self.errors = errors
        self.characters = characters
        self.bits = bits
        self.signed = signed
        self.sublinear = sublinear
        self.idf = idf
        self.norm = norm
        self.min_count = min_count
        self.min_share = min_share
        self.max_share = max_share
        self.min_documents = min_documents
        self.alpha = alpha
        self.class_prior = class_prior
        self.estimate = estimate
        self.select_options = select_options
        self.sample_rows = sample_rows
        self.random_state = random_state

    @property
    def event_(self) -> Text:
        """The event model that these settings mean.

        >>> import candide as cd
        >>> cd.TextNB("bernoulli", ngrams=(1, 2)).event_.ngrams
        (1, 2)
        """
        given = self.get_params()
        settings = {name: value for name, value in given.items() if name not in _NON_EVENT_PARAMS}
        settings["choose_weighting"] = settings.pop("select_options")
        usual = {
            name: getattr(DEFAULT_TEXT if self._learns_weights else Text(), name) for name in _WEIGHT_DEPENDENT_PARAMS
        }
        if self.analyzer != "word":
            usual["ngrams"] = Text(analyzer=self.analyzer).ngrams
        settings |= {name: usual[name] for name in _WEIGHT_DEPENDENT_PARAMS if name in given and given[name] is None}
        if isinstance(self.stop_words, str) and self.stop_words == "english":
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

            settings["stop_words"] = tuple(ENGLISH_STOP_WORDS)
        prior = usual["prior"] if self.alpha is None else Dirichlet(self.alpha)
        return Text(**settings, prior=prior)

    @property
    def _learns_weights(self) -> bool:
        """Whether words have weights that are learned."""
        if self.weights not in ("auto", "learned", None):
            raise unknown_name_error("weights", self.weights, ("auto", "learned", None))
        possible = self.model == "multinomial" and not (self.idf or self.signed) and self.estimate == "mean"
        if self.weights == "learned" and not possible:
            what = "weights are learned of model='multinomial', estimate='mean', without idf and signed"
            raise InputError(what, value=self.weights, remedy="leave these out, or pass weights=None")
        return self.weights is not None and possible and self.alpha != 0

    def with_prior(  # type: ignore[override]  # the prior of terms is one number
        self, alpha: Any = None, *, class_prior: Any = None, estimate: Any = None, **settings: Any
    ) -> Self:
        """The same counts under another prior, or another of the settings that come after the counting.

        >>> import candide as cd
        >>> model = cd.TextNB().fit(["Free prize, call now", "See you at five", "Free call"], ["spam", "ham", "spam"])
        >>> model.with_prior(0.1, model="complement").predict(["a free call"]).tolist()
        ['spam']
        """
        given = {"alpha": alpha, "class_prior": class_prior, "estimate": estimate, **settings}
        changes = {name: value for name, value in given.items() if value is not None}
        counted = self.counts_.plan.parts[0].event
        own = [name for name in ("ngrams", "sublinear") if name not in changes and getattr(self, name) is None]
        kept = {name: getattr(counted, name) for name in own}
        other = self._unfitted().set_params(**kept, **changes)
        if other.event_.spec(1) != counted.spec(1):
            changed = sorted(name for name in settings if getattr(self, name) != getattr(other, name))
            raise InputError(f"{', '.join(changed)}: this changes what is counted", value=changed, remedy="fit again")
        fitted = self._checked_fitted if other._learns_weights else replace(self._checked_fitted, term_weights=None)
        if (
            not other._learns_weights and len(fitted.plan.parts) > 1
        ):  # what stood beside the words has no part without weights
            fitted = replace(fitted, stored_counts=self.counts_.select_density_parts())
        return self._copy_with(fitted, **kept, **changes)

    def __add__(self, other: Any) -> Self:
        """The classifier of the documents of both; vocabularies are united.

        >>> import candide as cd
        >>> one, other = (cd.TextNB().partial_fit([text], ["spam"]) for text in ("free prize", "free call"))
        >>> sorted(term.word for term in (one + other).top_words("spam", 2))
        ['call', 'free']
        """
        both = super().__add__(other)
        if both is not NotImplemented and len(both._checked_fitted.plan.parts) < max(
            len(one._checked_fitted.plan.parts) for one in (self, other)
        ):
            what = "one of the two models hears no runs of characters beside its words: the sum hears none either"
            notes.issue_warnings(
                [Note("characters", what, remedy="fit both with characters=True, or False")], stacklevel=2
            )
        return both

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray]:
        """Documents and labels drawn from the model: words in no order.

        >>> import candide as cd
        >>> model = cd.TextNB().fit(["Free prize, call now", "See you at five", "Free call"], ["spam", "ham", "spam"])
        >>> documents, labels = model.sample(2, random_state=0)
        >>> len(documents), set(labels) <= {"ham", "spam"}
        (2, True)
        """
        columns, y = NaiveBayes.sample(self._generative_model, n_samples, random_state)
        return next(iter(columns.values())).tolist(), y

    def log_density(self, X: Any) -> NDArray:
        """log p(document), (documents,), of the words' own laws: a weighted score is no density.

        >>> import candide as cd
        >>> model = cd.TextNB().fit(["Free prize, call now", "See you at five", "Free call"], ["spam", "ham", "spam"])
        >>> model.log_density(["a free call"]).shape
        (1,)
        """
        return NaiveBayes.log_density(self._generative_model, X)

    @property
    def _generative_model(self) -> "TextNB":
        """The same documents, in which every word counts once."""
        self._check_fitted()
        alone = copy(self)
        alone.fitted_ = self.fitted_.generative_model
        return alone

    def _fit_rows(self, table: Table, y: NDArray, weight: Floats | None, labels: Labels) -> FittedModel:
        if not self._learns_weights:
            return super()._fit_rows(table, y, weight, labels)
        from candide.data.sample import Sample
        from candide.weighted.fit import count_sample, fit_weighted

        settings, plan = self._weighted_settings(labels, 1), self._plan(table)
        sample = Sample.from_table(table, labels.encode(y), labels, weight)
        if self.characters is None and self._can_add_characters:
            from candide.weighted.text.option_search import has_character_gain

            rows = sample.pool_rows(self.random_state)
            given = rows.table.documents(_COLUMN), rows.y, rows.weight, len(labels), rows.left_out_weight
            if has_character_gain(self.event_, self._character_event, *given):
                plan = Plan(plan.columns, (*plan.parts, PlanPart(self._character_event, (_COLUMN,))))
        rows = sample.limit_text(plan.token_columns, self.sample_rows, self.random_state)
        fitted = fit_weighted(rows, partial(count_sample, sample), plan=plan, settings=settings)
        return self._add_record(fitted, table, weight)

    def _read(self, X: Any) -> Table:
        """Documents, or a frame of one column of them, as a table of one column."""
        if isinstance(X, Mapping) or (hasattr(X, "columns") and hasattr(X, "shape")):
            frame = Table.from_data(X)
            if len(frame.names) != 1:
                raise InputError(
                    f"TextNB takes one column of documents, got {len(frame.names)}; name it, or use NaiveBayes"
                )
            X = frame.documents(frame.names[0])
        if hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.dtype.kind in "fiub"):
            raise InputError("TextNB takes documents (text); for counts of words use MultinomialNB")
        documents = Documents.from_column(X)
        return Table((_COLUMN,), len(documents), {_COLUMN: documents})

    def _read_to_score(self, X: Any, stacklevel: int) -> Table:
        return self._read_again(X, self.fitted_.plan)  # documents are one column, whatever its name

    def _formats(self, table: Table) -> ColumnTextFormats:
        return NO_FORMATS

    def _match_columns(self, table: Table, plan: Plan) -> Table:
        return table.rename_columns(plan.columns)

    def _plan(self, table: Table) -> Plan:
        parts = [PlanPart(self.event_, (_COLUMN,))]
        if self.characters and self._can_add_characters:
            parts.append(PlanPart(self._character_event, (_COLUMN,)))
        return Plan((_COLUMN,), tuple(parts))

    @property
    def _can_add_characters(self) -> bool:
        """Whether runs of characters can stand beside the terms."""
        possible = self._learns_weights and self.analyzer == "word"
        if self.characters and not possible:
            what = "characters are heard beside words that have weights"
            raise InputError(what, value=self.characters, remedy="pass analyzer='char_wb' for characters alone")
        return possible

    @property
    def _character_event(self) -> Text:
        """What runs of characters are heard as."""
        own = {name: getattr(self, name) for name in ("lowercase", "errors", "bits")}
        prior = CHARACTER_TEXT.prior if self.alpha is None else Dirichlet(self.alpha)
        return replace(CHARACTER_TEXT, **own, prior=prior)

    def _event(self) -> Text:
        return self.event_

    def _event_of(self, part: PlanPart) -> Text:
        beside = self.analyzer == "word" and part.event.spec(1) == self._character_event.spec(1)
        return self._character_event if beside else self.event_

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        prior = self.class_prior
        if isinstance(prior, str) and prior == "auto":
            prior = "uniform" if self.model == "complement" else "jeffreys" if self._learns_weights else "empirical"
        return Settings(prior, self.estimate)

    def _set_fitted(
        self, fitted: FittedModel, classes: NDArray, columns: tuple[Name, ...] | None, names: NDArray | None
    ) -> Self:
        return super()._set_fitted(fitted, classes, columns, None)  # documents have no columns to name

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.sparse, tags.input_tags.string = False, True
        return tags


_NON_EVENT_PARAMS = ("alpha", "characters", "class_prior", "estimate", "weights", "sample_rows", "random_state")
_WEIGHT_DEPENDENT_PARAMS = (
    "ngrams",
    "sublinear",
    "min_documents",
    "prior",
)  # what depends on whether weights are learned
