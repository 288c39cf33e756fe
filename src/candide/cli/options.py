"""The options that commands share. Those of settings and of reading are the fields of their records.

>>> (
...     [option.opts[0] for option in options_from_fields(ReadOptions)][:3],
...     [option.opts[0] for option in options_from_fields(Settings)][:2],
... )
(['--na', '--delimiter', '--header'], ['--class-prior', '--estimate'])
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context

from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.model.settings import DEFAULT_MODEL, DEFAULT_SETTINGS, Settings, default_settings, parse_class_prior

if TYPE_CHECKING:
    from candide.model.policy import Policy

_MAX_METAVAR_LENGTH = 18  # letters of all values together that may stand beside an option
MODEL = click.Path(dir_okay=False)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
TARGET = click.option("--target", "-t", metavar="COL", help="The column of the labels; the model's own if not given.")
WEIGHT = click.option("--weight", metavar="COL", help="The column of row weights.")


class EventOption(click.Option):
    """Its help names the event models; they are looked up when it is read, for most commands need none of them."""

    @property
    def help(self) -> str:
        from candide.events import EVENTS

        return (
            f"The event model of a column (repeatable). NAME is one of {', '.join(sorted(EVENTS))}. Of columns "
            "modelled together: COL,COL=gaussian-full (or gaussian-tied, gaussian-spherical). '*=NAME' is of every "
            "column that is not named."
        )

    @help.setter
    def help(self, text: str | None) -> None: ...


def options_from_fields(record: type) -> list[click.Option]:
    """An option for every field of a record of settings that can be typed."""
    return [_option(field) for field in fields(record) if field.metadata["typed"]]


def _option(field: Field) -> click.Option:
    about, switch = field.metadata, f"--{field.name.replace('_', '-')}"
    if about["parse"] is bool:
        return click.Option([f"{switch}/--no-{switch[2:]}"], default=field.default, help=about["help"])
    kind: Any = click.Choice(about["choices"]) if about["choices"] else None
    metavar = about["metavar"] or None
    if kind is not None and len("|".join(kind.choices)) > _MAX_METAVAR_LENGTH:  # the help names them, and has more room
        metavar = "NAME"
    if about["parse"] is int:
        kind, metavar = click.IntRange(about["least"]), "N"
    return click.Option(
        [switch],
        default=field.default,
        show_default=bool(about["choices"]) and _is_default(field),
        type=kind,
        metavar=metavar,
        multiple=about["repeated"],
        help=about["help"],
        callback=None if kind else _parse_callback(about["parse"]),
    )


def _is_default(field: Field) -> bool:
    """Whether a field has a value where none is given, the same in every model."""
    return field.default is not None and all(
        getattr(m, field.name, field.default) == field.default for m in DEFAULT_SETTINGS.values()
    )


def _parse_callback(parse: Callable[[str], Any]) -> Callable:
    def value(context: Any, option: Any, text: Any) -> Any:
        try:
            return text if text is None or parse is str else parse(text)
        except InputError as error:
            raise InputError(
                f"{option.opts[0]}: {error.problem}", value=error.value, remedy=error.remedy or ""
            ) from None

    return value


_PLANNING = [
    EventOption(["--event", "events"], multiple=True, metavar="COL=NAME"),
    click.Option(["--drop"], multiple=True, metavar="COL", help="Leave a column out (repeatable)."),
    click.Option(["--weight"], metavar="COL", help="The column of row weights."),
]
_MODEL = click.Option(
    ["--model"],
    default=DEFAULT_MODEL,
    show_default=True,
    type=click.Choice(list(DEFAULT_SETTINGS)),
    help="naive: every column speaks once, one pass; bayes: columns, pairs and more, each with a weight, two passes.",
)
_LEARNING = [_MODEL, *_PLANNING, *options_from_fields(Settings)]
_READING = options_from_fields(ReadOptions)
_FORCE = click.Option(["--force"], is_flag=True, help="Write over an input, or over a file that Candide did not make.")
_POLICY = [
    click.Option(
        ["--costs"], metavar="FILE", type=MODEL, help="A CSV of costs: give the class of least expected cost."
    ),
    click.Option(["--threshold"], type=float, metavar="P", help="Give --positive from this probability on."),
    click.Option(["--positive"], metavar="CLASS", help="The class that a threshold is of; of two the second."),
    click.Option(["--abstain-below"], type=float, metavar="P", help="Leave rows open that are less sure than this."),
    click.Option(["--referral"], type=float, metavar="COST", help="Leave rows open of which any class costs more."),
]
POLICY_NAMES = tuple(str(option.name) for option in _POLICY)
_TARGET_OPTIONS = [
    click.Option(["--at-precision"], type=float, metavar="P", help="Choose the threshold of this precision, by folds."),
    click.Option(["--at-recall"], type=float, metavar="P", help="Choose the threshold of this recall, by folds."),
]
CLASS_PRIOR = click.option(
    "--class-prior",
    metavar="SHARES",
    callback=_parse_callback(parse_class_prior),
    help="The shares of the classes where DATA come from: uniform, or yes=.02,no=.98.",
)
FOLD_BY = click.option(
    "--fold-by",
    metavar="COL",
    help="A column whose value says the fold of a row: rows of one value stay together. It is no feature then.",
)
LEARNING_NAMES, READING_NAMES, DECISION_NAMES = (
    [str(option.name) for option in some] for some in (_LEARNING, _READING, [*_POLICY, *_TARGET_OPTIONS])
)


def planning_options(command: Callable) -> Callable:
    """What is made of the columns; shared by check and all that learn."""
    return _add_options(command, _PLANNING)


def learning_options(command: Callable) -> Callable:
    """What is learned and how; shared by fit and evaluate."""
    return _add_options(command, _LEARNING)


def policy_options(command: Callable) -> Callable:
    """How probabilities become decisions."""
    return _add_options(command, _POLICY)


def policy_and_target_options(command: Callable) -> Callable:
    """The same, with a threshold that is chosen by cross-validation."""
    return _add_options(command, [*_POLICY, *_TARGET_OPTIONS])


def parse_policy(options: dict[str, Any], class_prior: Any = None) -> "tuple[Policy | None, dict[str, float]]":
    """The policy that is taken out of the options of a command, and what its threshold is to reach."""
    from candide.model.policy import Policy

    known = {str(one.name): options.pop(str(one.name), None) for one in (*_POLICY, *_TARGET_OPTIONS)}
    aim = {name[3:]: value for name in ("at_precision", "at_recall") if (value := known.pop(name)) is not None}
    if known["costs"] is not None:
        from candide.decisions.thresholds import read_costs

        known["costs"] = read_costs(known["costs"])
    if known["positive"] is not None and known["threshold"] is None and not aim:
        remedy = "pass --threshold, --at-precision or --at-recall with it"
        raise InputError("--positive names the class of a threshold", value=known["positive"], remedy=remedy)
    policy = Policy(**known, class_prior=class_prior)
    if aim and policy.can_change_class:
        remedy = "leave out --costs, --threshold, --abstain-below and --referral, or what is to be reached"
        raise InputError("one rule decides, and this names two", value=aim, remedy=remedy)
    return (policy if policy or aim else None), aim


def several_models_options(command: Callable) -> Callable:
    """What is learned and how, by any number of models."""
    models = click.Option(
        ["--model"], multiple=True, type=click.Choice(list(DEFAULT_SETTINGS)), help="A model to compare (repeatable)."
    )
    return _add_options(command, [models, *_LEARNING[1:]])


def reading_options(command: Callable) -> Callable:
    """How a source is read; shared by every command that takes DATA."""
    return _add_options(command, _READING)


def reading_options_except(*names: str) -> Callable:
    """How a sample is read, where a command has another use for some of the names."""
    return partial(_add_options, options=[option for option in _READING if option.name not in names])


def _add_options(command: Any, options: list[click.Option]) -> Any:
    """A function with more options, as click's own decorators leave them: the last comes first."""
    known = vars(command).setdefault("__click_params__", [])
    known.extend(reversed(options))
    return command


def parse_learning_options(options: dict[str, Any], data: str) -> dict[str, Any]:
    """The arguments of learning, taken out of the options of a command; what is left is of no other use."""
    given, typed = get_current_context().get_parameter_source, dict[str, Any]()
    for option in options_from_fields(Settings):
        value = options.pop(str(option.name))
        if given(str(option.name)).name == "COMMANDLINE":  # type: ignore[union-attr]
            typed[str(option.name)] = value
    model = options.pop("model")
    return {
        "model": model,
        "settings": default_settings(model).with_settings(**typed),
        **parse_planning_options(options, data),
    }


def parse_planning_options(options: dict[str, Any], data: str) -> dict[str, Any]:
    """The arguments that say what is made of the columns of a source, and how it is read."""
    known = {name: options.pop(name) for name in ("drop", "weight")}
    events = options.pop("events")
    reading = ReadOptions(**options)
    return {"events": _parse_events(events, data, reading) or "auto", "reading": reading, **known}


def _parse_events(texts: Collection[str], data: str, reading: ReadOptions) -> dict[Any, str]:
    """Event models by column, or by group of columns where they are modelled together."""
    from candide.engines.base import open_source
    from candide.events import resolve_event

    events: dict[Any, str] = {}
    columns: Collection[str] = ()
    if data != "-" and any("," in text for text in texts):  # a name may have a comma in it
        with open_source(data, reading) as source:
            columns = list(source.columns)
    for text in texts:
        column, equals, name = text.rpartition("=")
        if not equals:
            remedy = "pass COL=NAME, such as --event zip=categorical"
            raise InputError(f"--event {text!r} names no event model", value=text, remedy=remedy)
        if "," not in column or column in columns:
            events[column] = name
        elif resolve_event(name).accepts_groups:
            events[tuple(column.split(","))] = name
        else:
            events |= dict.fromkeys(column.split(","), name)
    return events


def output_option(metavar: str, text: str, *, required: bool = False) -> Callable:
    """Where a result is written, and whether over whatever is there."""
    output = click.Option(["--output", "-o"], metavar=metavar, type=MODEL, help=text, required=required)
    return partial(_add_options, options=[output, _FORCE])


def typed_arguments(names: Collection[str]) -> list[str]:
    """Those of the options of these names that were typed, as they may be typed again."""
    context, words = get_current_context(), list[str]()
    for option in context.command.params:
        if option.name not in names or context.get_parameter_source(option.name).name != "COMMANDLINE":  # type: ignore[union-attr]
            continue
        given = context.params[option.name]
        if isinstance(given, bool):
            words.append((option.opts if given else option.secondary_opts)[0])
            continue
        if isinstance(given, Mapping):
            given = ",".join(f"{name}={share!r}" for name, share in given.items())
        for value in given if isinstance(given, tuple) else [given]:
            words += [f"{option.opts[0]}={value}"] if str(value).startswith("-") else [option.opts[0], str(value)]
    return words
