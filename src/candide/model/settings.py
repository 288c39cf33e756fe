"""Settings: what comes after the counting, and may be chosen again without the data.

One record. Estimators, functions, options of the command line and the store go through its fields, so a new setting is
a field here and a use of it. Each field carries its help.

>>> from dataclasses import fields
>>> [one.name for one in fields(Settings)][:2]
['class_prior', 'estimate']
>>> even = Settings(class_prior="uniform").with_settings(estimate="map")
>>> even.class_prior, even.estimate, even.param_priors
('uniform', 'map', None)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from candide.errors import InputError, unknown_name_error


def setting(
    default: Any,
    text: str,
    *,
    choices: Sequence[str] = (),
    metavar: str = "",
    typed: bool = True,
    parse: Callable[[str], Any] = str,
    least: int | None = None,
    repeated: bool = False,
) -> Any:
    """A field with its help, and what the command line takes for it, unless it cannot be typed there.

    ``parse`` makes a value of a text: ``int``, with the ``least`` number allowed, ``bool`` for a switch that is on, off
    or not given, or any function that raises InputError. ``repeated``: the option may be given more than once.
    """
    given = {"choices": choices, "metavar": metavar, "typed": typed, "parse": parse}
    return field(default=default, metadata={"help": text, "least": least, "repeated": repeated, **given})


def parse_select(text: str) -> int | str:
    """What ``select`` takes, of its text.

    >>> parse_select("12"), parse_select("evidence")
    (12, 'evidence')
    """
    if text != "evidence" and not (text.isdecimal() and int(text) >= 1):
        remedy = "pass a number of columns >= 1, or 'evidence'"
        raise InputError(f"{text!r} is no choice of columns", value=text, remedy=remedy)
    return int(text) if text.isdecimal() else text


def parse_class_prior(text: str) -> str | dict[str, float]:
    """What ``class_prior`` takes, of its text.

    >>> parse_class_prior("uniform"), parse_class_prior("yes=.02,no=.98")
    ('uniform', {'yes': 0.02, 'no': 0.98})
    """
    if text in ("empirical", "uniform"):
        return text
    remedy = "pass empirical, uniform, or a share for each class, such as yes=.02,no=.98"
    found = dict[str, float]()
    for part in text.split(","):
        label, equals, share = part.rpartition("=")
        try:
            number = float(share) if equals else None
        except ValueError:
            number = None
        if number is None:
            raise InputError(f"{part!r} is no share of a class", value=text, remedy=remedy)
        if (label := label.strip()) in found:
            raise InputError(f"the share of {label!r} is said twice", value=label, remedy="give each class one share")
        found[label] = number
    return found


@dataclass(frozen=True)
class Settings:
    """What turns counts into a model."""

    class_prior: Any = setting(
        "empirical",
        "The shares of the classes: uniform, or yes=.02,no=.98; if not given those that were counted.",
        metavar="SHARES",
        parse=parse_class_prior,
    )
    estimate: Any = setting(
        "predictive",
        "How counts become probabilities, of the model naive: predictive, mean, map or mle.",
        choices=("predictive", "mean", "map", "mle"),
    )
    param_priors: Any = setting(None, "A prior, or priors by event model.", typed=False)
    select: int | str | None = setting(
        None,
        "Of the model naive: the K columns that tell most of the class, or all that tell; each fold has its own.",
        metavar="K|evidence",
        parse=parse_select,
    )

    @property
    def has_class_proportions(self) -> bool:
        """Whether the class prior gives a share to each class, and so says which there are."""
        prior = self.class_prior
        return isinstance(prior, Mapping) or (isinstance(prior, Iterable) and not isinstance(prior, str))

    @property
    def has_counted_prior(self) -> bool:
        """Whether the class prior follows the class proportions of the rows."""
        return isinstance(self.class_prior, str) and self.class_prior in ("jeffreys", "empirical")

    def with_settings(self, **settings: Any) -> "Settings":
        """The same settings but for some."""
        return replace(self, **settings)


DEFAULT_SETTINGS = {"naive": Settings(), "bayes": Settings(class_prior="jeffreys")}
DEFAULT_MODEL = "bayes"
TERMS = ("columns", "interactions", "all")  # kinds of term of the weighted model, each with those before
CALIBRATIONS = ("logistic", "isotonic")  # of the weighted model; model/calibration.py implements them
_DOCUMENTS_PER_ROW = 5  # token weights are many, and are learned from more rows than other weights


@dataclass(frozen=True)
class WeightedSettings:
    """How the weighted model is fitted. Unlike :class:`Settings`, none of it can change without the rows.

    The fields are parameters of :class:`candide.BayesClassifier`, but for ``model``, how counts become a model.

    >>> WeightedSettings(sample_rows=100).max_documents
    500
    """

    model: Settings = setting(DEFAULT_SETTINGS["bayes"], "How counts become a model.", typed=False)
    events: Any = setting("auto", "Event models by column; columns not named are inferred.", typed=False)
    terms: str = setting(
        "all",
        "Terms besides the columns: none (columns), pairs and triples of columns (interactions), or discriminants and"
        " prototypes as well (all).",
        choices=TERMS,
    )
    sample_rows: int = setting(20_000, "Rows that weights are learned from, at most.", parse=int, least=1)
    random_state: int = setting(0, "Seed for drawing these rows.", parse=int, least=0)
    calibration: str | None = setting(None, "Calibrate predicted probabilities on held-out rows.", choices=CALIBRATIONS)

    def __post_init__(self) -> None:
        for name, choices in (("terms", TERMS), ("calibration", (None, *CALIBRATIONS))):
            if getattr(self, name) not in choices:
                raise unknown_name_error(name, getattr(self, name), choices[choices[0] is None :])
        for name, least in (("sample_rows", 1), ("random_state", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                remedy = f"pass a whole number of at least {least}"
                raise InputError(f"{name}: not a valid value: {value!r}", value=value, remedy=remedy)

        if self.calibration and not self.model.has_counted_prior:
            problem = "calibration matches the class proportions of the rows, whatever the class prior"
            raise InputError(problem, value=self.model.class_prior, remedy="leave class_prior out, or calibration")

    @property
    def max_documents(self) -> int:
        """Rows that token weights are learned from, at most."""
        return _DOCUMENTS_PER_ROW * self.sample_rows


def default_settings(model: str) -> Settings:
    """The settings that a model has where none are given.

    >>> default_settings("naive").class_prior, default_settings("bayes").class_prior
    ('empirical', 'jeffreys')
    """
    if model not in DEFAULT_SETTINGS:
        raise unknown_name_error("model", model, DEFAULT_SETTINGS)
    return DEFAULT_SETTINGS[model]
