"""TextNB: documents in, classes out."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.estimators.naive_bayes import NaiveBayes
from candide.events import Text
from candide.model.fitted import Fitted
from candide.model.plan import Part, Plan
from candide.model.settings import Settings
from candide.priors import Dirichlet
from candide.rows.documents import Documents
from candide.rows.labels import Labels
from candide.rows.table import Name, Table

_COLUMN = "text"


class TextNB(NaiveBayes):
    """Naive Bayes of documents: counts their terms class by class, with no document-term matrix.

    Takes a list, an array, a pandas, polars or Arrow column of text (or of UTF-8 bytes); None is a document that says
    nothing. A document may also be a list of words, or of word numbers. With the settings below left as they are it
    predicts what scikit-learn's ``CountVectorizer`` and ``MultinomialNB`` predict.

    Parameters
    ----------
    model : "multinomial", "bernoulli", "complement" or "polya"
        Whether each occurrence of a term counts, or its presence and absence, or how little a document resembles the
        other classes, or repeats less than first occurrences.
    ngrams : (shortest, longest) run of words, or of characters, that is a term
    analyzer : "word" or "char"
    lowercase : whether capitals are small letters
    stop_words : words left out
    max_token_length : longer words are left out
    pattern : an own regular expression for words; slower
    errors : "strict", "replace" or "ignore": the rule for bytes that are no UTF-8
    bits : terms are hashed into 2**bits buckets, for constant memory; 0 for an open vocabulary
    signed : a hashed term is counted with the sign of its hash
    sublinear : n occurrences in a document count 1 + log n
    idf : terms of few documents weigh more
    norm : complement: divide by a class's sum of weights
    min_count, min_share, max_share : leave out terms by their count or by the share of documents that have them;
        chosen after the counting, as are ``model``, ``idf``, ``norm`` and ``alpha``
    alpha : imaginary occurrences of every term in every class
    class_prior : "auto" (the shares of the documents; none for "complement"), or as in :class:`NaiveBayes`
    estimate : "mean", "map" or "mle"

    Examples
    --------
    >>> import candide as cd
    >>> model = cd.TextNB().fit(["Free prize, call now", "See you at five", "Free call"], ["spam", "ham", "spam"])
    >>> model.predict(["a free prize", "see you"]).tolist()
    ['spam', 'ham']
    >>> [(t.term, t.count, t.others) for t in model.top_terms("spam", 2)]
    [('call', 2.0, 0.0), ('free', 2.0, 0.0)]
    >>> more = cd.TextNB().partial_fit(["you won a prize"], ["spam"])
    >>> (model + more).census_.class_weight.tolist()
    [1.0, 3.0]
    """

    _in_file = "TextNB"

    def __init__(
        self,
        model: str = "multinomial",
        *,
        ngrams: tuple[int, int] = (1, 1),
        analyzer: str = "word",
        lowercase: bool = True,
        stop_words: Any = (),
        max_token_length: int | None = None,
        pattern: str | None = None,
        errors: str = "strict",
        bits: int = 0,
        signed: bool = False,
        sublinear: bool = False,
        idf: bool = False,
        norm: bool = False,
        min_count: float = 0.0,
        min_share: float = 0.0,
        max_share: float = 1.0,
        alpha: float = 1.0,
        class_prior: Any = "auto",
        estimate: str = "mean",
    ):
        self.model = model
        self.ngrams = ngrams
        self.analyzer = analyzer
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.max_token_length = max_token_length
        self.pattern = pattern
        self.errors = errors
        self.bits = bits
        self.signed = signed
        self.sublinear = sublinear
        self.idf = idf
        self.norm = norm
        self.min_count = min_count
        self.min_share = min_share
        self.max_share = max_share
        self.alpha = alpha
        self.class_prior = class_prior
        self.estimate = estimate

    @property
    def event_(self) -> Text:
        """The event model that these settings mean.

        >>> import candide as cd
        >>> cd.TextNB("bernoulli", ngrams=(1, 2)).event_.ngrams
        (1, 2)
        """
        settings = {name: value for name, value in self.get_params().items() if name not in _NOT_OF_THE_EVENT}
        return Text(**settings, prior=Dirichlet(self.alpha))

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
        other = self._unfitted().set_params(**changes)
        if other.event_.spec(1) != self.census_.plan.parts[0].event.spec(1):
            changed = sorted(name for name in settings if getattr(self, name) != getattr(other, name))
            raise InputError(f"{', '.join(changed)}: this changes what is counted", value=changed, remedy="fit again")
        return self._with(self._own, **changes)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray]:
        """Documents and labels drawn from the model: words in no order.

        >>> import candide as cd
        >>> model = cd.TextNB().fit(["Free prize, call now", "See you at five", "Free call"], ["spam", "ham", "spam"])
        >>> documents, labels = model.sample(2, random_state=0)
        >>> len(documents), set(labels) <= {"ham", "spam"}
        (2, True)
        """
        columns, y = super().sample(n_samples, random_state)
        return next(iter(columns.values())).tolist(), y

    def _read(self, X: Any) -> Table:
        """Documents, or a frame of one column of them, as a table of one column."""
        if isinstance(X, Mapping) or (hasattr(X, "columns") and hasattr(X, "shape")):
            frame = Table.of(X)
            if len(frame.names) != 1:
                raise InputError(
                    f"TextNB takes one column of documents, got {len(frame.names)}; name it, or use NaiveBayes"
                )
            X = frame.documents(frame.names[0])
        if hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.dtype.kind in "fiub"):
            raise InputError("TextNB takes documents (text); for counts of words use MultinomialNB")
        documents = Documents.of(X)
        return Table((_COLUMN,), len(documents), {_COLUMN: documents})

    def _alike(self, table: Table, plan: Plan) -> Table:
        return table.renamed(plan.columns)

    def _plan(self, table: Table) -> Plan:
        return Plan((_COLUMN,), (Part(self.event_, (_COLUMN,)),))

    def _event(self) -> Text:
        return self.event_

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        prior = self.class_prior
        if isinstance(prior, str) and prior == "auto":
            prior = "uniform" if self.model == "complement" else "empirical"
        return Settings(prior, self.estimate)

    def _keep(self, fitted: Fitted, classes: NDArray, columns: tuple[Name, ...] | None, names: NDArray | None) -> Self:
        return super()._keep(fitted, classes, columns, None)  # documents have no columns to name

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.sparse, tags.input_tags.string = False, True
        return tags


_NOT_OF_THE_EVENT = ("alpha", "class_prior", "estimate")
