"""TextNB: a classifier of documents."""

from collections.abc import Mapping
from copy import copy
from dataclasses import fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Self

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
from candide.estimators.bayes_classifier import WeightedClassifier
from candide.estimators.naive_bayes import NaiveBayes
from candide.estimators.sklearn_contract import takes_settings
from candide.events import Text
from candide.events.text import CHARACTER_TEXT, DEFAULT_TEXT
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.model.settings import Settings
from candide.priors import Dirichlet

_COLUMN = "text"
_NOT_PARAMS = ("model", "prior", "is_auxiliary", "choose_weighting")  # fields of Text that are not settings of TextNB
_WEIGHT_DEPENDENT = ("ngrams", "sublinear", "min_documents", "prior")  # whose default depends on learned weights


class TextNB(WeightedClassifier):
    """Naive Bayes for documents: counts their tokens class by class, without a document-term matrix.

    Takes a list, an array, a pandas, polars or Arrow column of text (or of UTF-8 bytes); None is a missing document. A
    document may also be a list of words, or of word numbers.

    Each token, a word or a pair of words, has a weight, learned from its score of documents left out of its counts: so
    redundant words are not counted twice, and probabilities are calibrated. ``weights=None`` is plain naive Bayes, and
    predicts what scikit-learn's ``CountVectorizer`` and ``MultinomialNB`` predict.

    Parameters
    ----------
    weights : "auto", "learned" or None
        "auto": learned, where the model is multinomial, without ``idf`` or ``signed``.
    model : "multinomial", "bernoulli", "complement" or "polya"
        Every occurrence of a token counts; or its presence and absence; or how little a document resembles the other
        classes; or repeats count less than first occurrences.
    ngrams : (shortest, longest) run of words, or of characters, that is a token
        None: words, and pairs of words where weights are learned; characters; for "char_wb" 3 to 5 characters.
    analyzer : "word", "char" or "char_wb"
        Tokens are runs of words, of characters, or of characters within a word padded with a blank at both ends: for
        languages without spaces, for names, for short and noisy text.
    lowercase : convert to lower case first
    stop_words : words to leave out, or "english" for scikit-learn's list; common words get small weights without it
    max_token_length : leave out longer words
    pattern : a regular expression for words; slower
    errors : "strict", "replace" or "ignore": how to treat bytes that are not UTF-8
    characters : add runs of characters within words, with weights of their own; None: decide by the length of the
        documents and held-out documents, where weights are learned
    bits : hash tokens into 2**bits buckets, for constant memory; 0 for an open vocabulary
    signed : count a hashed token with the sign of its hash
    sublinear : n occurrences in a document count 1 + log n; None: where weights are learned
    idf : give tokens of few documents more weight
    norm : complement: divide by a class's sum of weights
    min_count, min_share, max_share : leave out tokens by their count or by the proportion of documents that have them;
        applied after counting, as are ``model``, ``idf``, ``norm`` and ``alpha``
    min_documents : leave out tokens that fewer documents have; None: where weights are learned from more than 50
        documents, pairs of words (hashed tokens, runs of characters) that only one document has
    alpha : pseudo-count of every token in every class; None: 1/2 where weights are learned, else 1
    class_prior : "auto" (the class proportions; uniform for "complement"), or as in :class:`NaiveBayes`
    estimate : "mean", "map" or "mle"; with learned weights "mean"
    select_options : choose by held-out documents how words are weighted: with or without pairs, each occurrence or
        1 + log n, the power of the length, the strength of the penalty, or no weights; None: for 100 to 1,000
        documents; never for fewer
    sample_rows : most documents that weights are learned from, fewer of long ones; all documents are counted
    random_state : seed of the sample of documents

    Examples
    --------
    >>> import candide as cd
    >>> model = cd.TextNB().fit(["Free prize, call now", "See you at five", "Free call"], ["spam", "ham", "spam"])
    >>> model.predict(["a free prize", "see you"]).tolist()
    ['spam', 'ham']
    >>> [(top.word, top.count, top.other_count) for top in model.top_words("spam", 2)]
    [('call', 2.0, 0.0), ('free', 2.0, 0.0)]
    >>> later = cd.TextNB().partial_fit(["you won a prize"], ["spam"])
    >>> (model + later).counts_.class_weight.tolist()
    [1.0, 3.0]
    """

    _record_name = "TextNB"
    _input_tags: ClassVar[dict[str, bool]] = dict.fromkeys(("allow_nan", "categorical", "string", "one_d_array"), True)
    _input_tags |= {"two_d_array": False}
    _record_defaults = MappingProxyType({"weights": None})

    model: str
    weights: str | None
    analyzer: str
    stop_words: Any
    idf: bool
    signed: bool
    characters: bool | None
    alpha: float | None
    class_prior: Any
    estimate: str

    @takes_settings(Text, without=_NOT_PARAMS, ngrams=None, sublinear=None, min_documents=None)
    def __init__(
        self,
        model: str = "multinomial",
        *,
        weights: str | None = "auto",
        characters: bool | None = None,
        alpha: float | None = None,
        class_prior: Any = "auto",
        estimate: str = "mean",
        select_options: bool | None = None,
        sample_rows: int = 100_000,
        random_state: int = 0,
        **settings: Any,
    ): ...

    @property
    def event_(self) -> Text:
        """The event model of these parameters.

        >>> import candide as cd
        >>> cd.TextNB("bernoulli", ngrams=(1, 2)).event_.ngrams
        (1, 2)
        """
        given = self.get_params()
        settings = {field.name: given[field.name] for field in fields(Text) if field.name in given}
        settings["choose_weighting"] = given["select_options"]
        base = DEFAULT_TEXT if self._learns_weights else Text()
        defaults = {name: getattr(base, name) for name in _WEIGHT_DEPENDENT}
        if self.analyzer != "word":
            defaults["ngrams"] = Text(analyzer=self.analyzer).ngrams
        settings |= {name: defaults[name] for name, value in settings.items() if name in defaults and value is None}
        if isinstance(self.stop_words, str) and self.stop_words == "english":
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

            settings["stop_words"] = tuple(ENGLISH_STOP_WORDS)
        prior = defaults["prior"] if self.alpha is None else Dirichlet(self.alpha)
        return Text(**settings, prior=prior)

    @property
    def _learns_weights(self) -> bool:
        if self.weights not in ("auto", "learned", None):
            raise unknown_name_error("weights", self.weights, ("auto", "learned", None))
        possible = self.model == "multinomial" and not (self.idf or self.signed) and self.estimate == "mean"
        if self.weights == "learned" and not possible:
            what = "weights are learned only for model='multinomial', estimate='mean', without idf and signed"
            raise InputError(what, value=self.weights, remedy="leave these out, or pass weights=None")
        return self.weights is not None and possible and self.alpha != 0

    def with_prior(  # type: ignore[override]  # the prior of terms is one number
        self, alpha: Any = None, *, class_prior: Any = None, estimate: Any = None, **settings: Any
    ) -> Self:
        """A new classifier of the same counts under another prior, or other settings that apply after counting.

        >>> import candide as cd
        >>> model = cd.TextNB().fit(["Free prize, call now", "See you at five", "Free call"], ["spam", "ham", "spam"])
        >>> model.with_prior(0.1, model="complement").predict(["a free call"]).tolist()
        ['spam']
        """
        given = {"alpha": alpha, "class_prior": class_prior, "estimate": estimate, **settings}
        changes = {name: value for name, value in given.items() if value is not None}
        counted = self.counts_.plan.parts[0].event
        implied = [name for name in ("ngrams", "sublinear") if name not in changes and getattr(self, name) is None]
        changes |= {name: getattr(counted, name) for name in implied}
        other = self._unfitted().set_params(**changes)
        if other.event_.spec(1) != counted.spec(1):
            changed = sorted(name for name in settings if getattr(self, name) != getattr(other, name))
            raise InputError(f"{', '.join(changed)}: this changes what is counted", value=changed, remedy="fit again")
        fitted = self._checked_fitted if other._learns_weights else replace(self._checked_fitted, term_weights=None)
        if not other._learns_weights and len(fitted.plan.parts) > 1:  # runs of characters need weights
            fitted = replace(fitted, stored_counts=self.counts_.select_density_parts())
        return self._copy_with(fitted, **changes)

    def __add__(self, other: Any) -> Self:
        """The classifier of the documents of both; vocabularies are united."""
        both = super().__add__(other)
        if both is NotImplemented:
            return both
        n_both, *n_parts = (len(model._checked_fitted.plan.parts) for model in (both, self, other))
        if n_both < max(n_parts):
            what = "only one of the two models uses runs of characters: the sum does not use them"
            remedy = "fit both with characters=True, or False"
            notes.issue_warnings([Note("characters", what, remedy=remedy)], stacklevel=2)
        return both

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray]:
        """Documents and labels drawn from the model, as bags of words."""
        columns, y = NaiveBayes.sample(self._generative_model, n_samples, random_state)
        return next(iter(columns.values())).tolist(), y

    @property
    def _generative_model(self) -> "TextNB":
        other = copy(self)
        other.fitted_ = self._checked_fitted.generative_model
        return other

    def _fit_rows(self, table: Table, y: NDArray, weight: Floats | None, labels: Labels) -> FittedModel:
        if not self._learns_weights:
            return super()._fit_rows(table, y, weight, labels)
        from candide.data.sample import Sample
        from candide.weighted.fit import count_sample, fit_weighted

        settings, plan = self._weighted_settings(labels, 1), self._plan(table)
        sample = Sample.from_table(table, labels.encode(y), labels, weight)
        if self.characters is None and self._can_add_characters:
            from candide.weighted.text_options import has_character_gain

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
                what = f"TextNB takes one column of documents, got {len(frame.names)}; name it, or use NaiveBayes"
                raise InputError(what)
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
        possible = self._learns_weights and self.analyzer == "word"
        if self.characters and not possible:
            what = "runs of characters can only be added to words with weights"
            raise InputError(what, value=self.characters, remedy="pass analyzer='char_wb' for characters alone")
        return possible

    @property
    def _character_event(self) -> Text:
        settings = {name: getattr(self, name) for name in ("lowercase", "errors", "bits")}
        prior = CHARACTER_TEXT.prior if self.alpha is None else Dirichlet(self.alpha)
        return replace(CHARACTER_TEXT, **settings, prior=prior)

    def _event(self) -> Text:
        return self.event_

    def _event_of(self, part: PlanPart) -> Text:
        is_characters = self.analyzer == "word" and part.event.spec(1) == self._character_event.spec(1)
        return self._character_event if is_characters else self.event_

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        prior = self.class_prior
        if isinstance(prior, str) and prior == "auto":
            prior = "uniform" if self.model == "complement" else "jeffreys" if self._learns_weights else "empirical"
        return Settings(prior, self.estimate)

    def _set_fitted(
        self, fitted: FittedModel, classes: NDArray, columns: tuple[Name, ...] | None, names: NDArray | None
    ) -> Self:
        return super()._set_fitted(fitted, classes, columns, None)  # documents have no columns to name
