"""Settings: the choices made after counting, which can be changed without the data.

Estimator signatures, keywords of ``candide.fit``, options of the command line and checks of model files are made from
the fields, so that a new setting is a field here and its use.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
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
    is_valid: Callable[[Any], bool] | None = None,
) -> Any:
    """Return a field with its help, its option of the command line (unless not ``typed``), and its check.

    ``parse`` makes a value from a text: ``int``, with the ``least`` number allowed, ``bool`` for a switch, or any
    function that raises InputError. ``repeated``: the option may be given more than once. ``is_valid`` checks a value
    from a model file; by default it must be one of the ``choices``, or a whole number of at least ``least``.
    """
    if is_valid is None and choices:
        is_valid = (default, *choices).__contains__
    elif is_valid is None and least is not None:
        is_valid = lambda value: type(value) is int and value >= least  # noqa: E731
    option = {"choices": choices, "metavar": metavar, "typed": typed, "parse": parse, "least": least}
    return field(default=default, metadata={"help": text, "repeated": repeated, "is_valid": is_valid, **option})


def find_invalid_setting(settings: Any) -> tuple[str, Any] | None:
    """Return the name and the value of a field that fails its check; None if all are valid."""
    for each in fields(settings):
        value, is_valid = getattr(settings, each.name), each.metadata["is_valid"]
        if is_valid is not None and not is_valid(value):
            return each.name, value
    return None


def parse_select(text: str) -> int | str:
    """Parse the option ``select``: a number of columns, or "evidence"."""
    if text != "evidence" and not (text.isdecimal() and int(text) >= 1):
        remedy = "pass a number of columns >= 1, or 'evidence'"
        raise InputError(f"{text!r} does not select columns", value=text, remedy=remedy)
    return int(text) if text.isdecimal() else text


def parse_class_prior(text: str) -> str | dict[str, float]:
    """Parse the option ``class_prior``: "empirical", "jeffreys", "uniform", or proportions such as yes=.02,no=.98."""
    if text in ("empirical", "jeffreys", "uniform"):
        return text
    proportions = dict[str, float]()
    for part in text.split(","):
        label, equals, number = part.rpartition("=")
        try:
            proportion = float(number if equals else "")
        except ValueError:
            remedy = "pass empirical, jeffreys, uniform, or a proportion for each class, such as yes=.02,no=.98"
            raise InputError(f"{part!r} is not a proportion of a class", value=text, remedy=remedy) from None
        if (label := label.strip()) in proportions:
            remedy = "give each class one proportion"
            raise InputError(f"the proportion of {label!r} is given twice", value=label, remedy=remedy)
        proportions[label] = proportion
    return proportions


def _is_prior(value: Any) -> bool:
    from candide.priors import PRIORS, Prior  # here: the help of the command line does without numpy

    return isinstance(value, Prior) or (isinstance(value, str) and value in PRIORS)


def _is_class_prior(value: Any) -> bool:
    if isinstance(value, Mapping | tuple):
        numbers = value.values() if isinstance(value, Mapping) else value
        return all(type(n) in (int, float) and abs(n) <= sys.float_info.max for n in numbers)
    return value is None or _is_prior(value) or (isinstance(value, str) and value in ("empirical", "uniform"))


def _each(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check of one value for all event models, or of values by event model."""
    return lambda value: all(map(is_valid, value.values() if isinstance(value, Mapping) else (value,)))


ESTIMATES = ("predictive", "mean", "map", "mle")


@dataclass(frozen=True)
class Settings:
    """How counts become a model."""

    class_prior: Any = setting(
        "empirical",
        "Class proportions: jeffreys (default), empirical (default of naive), uniform, or yes=.02,no=.98.",
        metavar="PRIOR",
        parse=parse_class_prior,
        is_valid=_is_class_prior,
    )
    estimate: Any = setting(
        "predictive",
        "How counts become probabilities (model naive): predictive, mean, map or mle.",
        choices=ESTIMATES,
        is_valid=_each(lambda value: isinstance(value, str) and value in ESTIMATES),
    )
    param_priors: Any = setting(
        None,
        "A prior, or priors by event model.",
        typed=False,
        is_valid=_each(lambda value: value is None or _is_prior(value)),
    )
    select: int | str | None = setting(
        None,
        "Use the K columns with most evidence, or all with positive evidence (model naive); folds select their own.",
        metavar="K|evidence",
        parse=parse_select,
        is_valid=lambda value: value in (None, "evidence") or (type(value) is int and value >= 1),
    )

    @property
    def has_class_proportions(self) -> bool:
        """Whether the class prior gives a proportion of each class, and so names the classes."""
        prior = self.class_prior
        return isinstance(prior, Mapping) or (isinstance(prior, Iterable) and not isinstance(prior, str))

    @property
    def has_counted_prior(self) -> bool:
        """Whether the class prior follows the class proportions of the rows."""
        return isinstance(self.class_prior, str) and self.class_prior in ("jeffreys", "empirical")

    def with_settings(self, **settings: Any) -> "Settings":
        return replace(self, **settings)


DEFAULT_SETTINGS = {"naive": Settings(), "bayes": Settings(class_prior="jeffreys")}
DEFAULT_MODEL = "bayes"
TERMS = ("columns", "interactions", "all", "tables")  # kinds of term of the weighted model, each with those before
CALIBRATIONS = ("logistic", "isotonic")  # of the weighted model
_DOCUMENTS_PER_ROW = 5  # token weights are many, and are learned from more rows than other weights


@dataclass(frozen=True)
class WeightedSettings:
    """How the weighted model is fitted. Unlike :class:`Settings`, none of it can change without the rows.

    The fields are parameters of :class:`candide.BayesClassifier`, but for ``model``, how counts become a model.
    """

    model: Settings = setting(DEFAULT_SETTINGS["bayes"], "How counts become a model.", typed=False)
    events: Any = setting("auto", "Event models by column; columns not named are inferred.", typed=False)
    terms: str = setting(
        "all",
        "Terms besides the columns: none (columns), pairs and triples of columns (interactions), discriminants and"
        " prototypes as well (all), or decision tables as well (tables).",
        choices=TERMS,
    )
    sample_rows: int = setting(20_000, "Rows that weights are learned from, at most.", parse=int, least=1)
    random_state: int = setting(0, "Seed for drawing these rows.", parse=int, least=0)
    calibration: str | None = setting(None, "Calibrate predicted probabilities on held-out rows.", choices=CALIBRATIONS)

    def __post_init__(self) -> None:
        for each in fields(self):
            name, choices, least = each.name, each.metadata["choices"], each.metadata["least"]
            value: Any = getattr(self, name)
            if choices and value not in (each.default, *choices):
                raise unknown_name_error(name, value, choices)
            is_whole = isinstance(value, Integral) and not isinstance(value, bool)
            if least is not None and not (is_whole and value >= least):
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
    if model not in DEFAULT_SETTINGS:
        raise unknown_name_error("model", model, DEFAULT_SETTINGS)
    return DEFAULT_SETTINGS[model]


@dataclass(frozen=True)
class WeightedLimits:
    """What bounds the work of fitting the weighted model; chosen by judgement where no measurement is given."""

    # Interactions. A pair term costs about as much to learn and to score as a column.
    max_sets: tuple[tuple[int, int], ...] = ((2, 200), (3, 100))  # (columns in a set, sets selected)
    max_seed_pairs: int = 60  # selected pairs that are extended to triples
    max_paired_columns: int = 200  # columns tried in pairs: 20,000 pairs
    max_set_cells: int = 200_000  # cells of a tested set, over all classes
    grid_cells: tuple[int, int] = (8, 16)  # cells of a numeric column in a set, at least and at most
    max_singletons: float = 0.01  # proportion of rows whose level occurs once; beyond, new rows keep adding levels
    contributions_at_once: int = 1 << 22  # (row, class, set) numbers of the exact score test: 32 MB

    # Discriminants and prototypes. Their cost grows with the square of the width.
    max_discriminant_numbers: int = 300
    max_column_indicators: int = 60  # indicator variables of a categorical column
    max_indicators: int = 400  # width of a discriminant of numbers and categories
    n_prototypes: int = 64  # rows that others are compared with; each adds a column to the kernel discriminant

    # Decision tables.
    rows_per_table_cell: float = 4.0  # of a number in tables: cells that fewer rows are in say little,
    table_cells: tuple[int, int] = (16, 128)  # at least and at most
    max_table_levels: int = 254  # of a category: a code is a byte
    table_rows: int = 100_000  # that tables are grown on, at most

    # Text options. A trial learns weights once; a search has up to 27 of them.
    max_searched_documents: int = 1000  # up to which options are searched by default
    max_held_out_documents: int = 1000  # in all trials, about
    max_training_documents: int = 10_000  # of a trial: from a tenth of them, pairs would seem to contribute little
    character_documents: int = 3000  # on which runs of characters are tried

    # Contributions (row, class, term).
    max_double_contributions: int = 1 << 22  # of a part, kept in double precision; more of them in single
    chunk_numbers: int = 1 << 17  # numbers that stay in cache while they are worked on: 1 MB


LIMITS = WeightedLimits()
