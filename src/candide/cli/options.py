"""Options that commands share. Those of settings and of reading come from the fields of their records."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context

from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.model.settings import DEFAULT_MODEL, DEFAULT_SETTINGS, Settings, WeightedSettings, parse_class_prior

if TYPE_CHECKING:
    from candide.model.policy import Policy

_MAX_METAVAR_LENGTH = 18  # characters of all choices together that are shown beside an option
MODEL = click.Path(dir_okay=False)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
TARGET = click.option("--target", "-t", metavar="COL", help="Column of the labels. Default: that of the model.")
TARGET_TO_LEARN = click.option("--target", "-t", required=True, metavar="COL", help="Column to predict.")
WEIGHT = click.option("--weight", metavar="COL", help="Column of row weights.")


class EventOption(click.Option):
    """Its help lists the event models, which are imported only when it is shown."""

    @property
    def help(self) -> str:
        from candide.events import EVENTS

        return (
            f"Event model of a column (repeatable). NAME is one of {', '.join(sorted(EVENTS))}. For columns that are "
            "modelled jointly: COL,COL=gaussian-full (or gaussian-tied, gaussian-spherical). '*=NAME' is for every "
            "column that is not named."
        )

    @help.setter
    def help(self, text: str | None) -> None: ...


def options_from_fields(record: type) -> list[click.Option]:
    """An option for every field of a record of settings that can be typed."""
    return [_option(field) for field in fields(record) if field.metadata["typed"]]


def _option(field: Field) -> click.Option:
    metadata, switch = field.metadata, f"--{field.name.replace('_', '-')}"
    choices, parse = metadata["choices"], metadata["parse"]
    if parse is bool:
        return click.Option([f"{switch}/--no-{switch[2:]}"], default=field.default, help=metadata["help"])
    kind: Any = click.Choice(choices) if choices else click.IntRange(metadata["least"]) if parse is int else None
    is_long = len("|".join(choices or ())) > _MAX_METAVAR_LENGTH  # the help lists the choices, with more space
    defaults = [getattr(settings, field.name, field.default) for settings in DEFAULT_SETTINGS.values()]
    has_one_default = field.default is not None and all(default == field.default for default in defaults)
    return click.Option(
        [switch],
        default=field.default,
        show_default=has_one_default and (bool(choices) or parse is int),
        type=kind,
        metavar="N" if parse is int else "NAME" if is_long else metadata["metavar"] or None,
        multiple=metadata["repeated"],
        help=metadata["help"],
        callback=None if kind else _parse_callback(parse),
    )


def _parse_callback(parse: Callable[[str], Any]) -> Callable:
    def value(context: Any, option: Any, text: Any) -> Any:
        try:
            return text if text is None or parse is str else parse(text)
        except InputError as error:
            what = f"{option.opts[0]}: {error.problem}"
            raise InputError(what, value=error.value, remedy=error.remedy or "") from None

    return value


_PLANNING = [
    EventOption(["--event", "events"], multiple=True, metavar="COL=NAME"),
    click.Option(["--drop"], multiple=True, metavar="COL", help="Leave a column out (repeatable)."),
    click.Option(["--weight"], metavar="COL", help="Column of row weights."),
]
_SETTINGS, _READING = options_from_fields(Settings), options_from_fields(ReadOptions)
_WEIGHTED = [option for option in options_from_fields(WeightedSettings) if option.name != "calibration"]  # of fit alone
_MODEL_HELP = "naive: one term per column, one pass; bayes: columns, pairs and more, with learned weights, two passes."
_MODEL_KINDS = click.Choice(list(DEFAULT_SETTINGS))
_MODEL = click.Option(["--model"], default=DEFAULT_MODEL, show_default=True, type=_MODEL_KINDS, help=_MODEL_HELP)
_LEARNING = [_MODEL, *_PLANNING, *_SETTINGS, *_WEIGHTED]
_FORCE = click.Option(["--force"], is_flag=True, help="Overwrite an input, or a file that Candide did not write.")


def _number_option(name: str, metavar: str, text: str) -> click.Option:
    return click.Option([name], type=float, metavar=metavar, help=text)


_POLICY = [
    click.Option(["--costs"], metavar="FILE", type=MODEL, help="Predict the class of least expected cost; a CSV."),
    _number_option("--threshold", "P", "Predict the --positive class when its probability is at least P."),
    click.Option(
        ["--positive"], metavar="CLASS", help="Class the threshold applies to. Default: the second of two classes."
    ),
    _number_option("--abstain-below", "P", "Abstain when every probability is below P."),
    _number_option("--abstain-cost", "COST", "Abstain when the expected cost of every class exceeds COST."),
]
POLICY_NAMES = tuple(str(option.name) for option in _POLICY)
_THRESHOLD_AIMS = [
    _number_option("--at-precision", "P", "Select the threshold with this precision, by folds."),
    _number_option("--at-recall", "P", "Select the threshold with this recall, by folds."),
]
CLASS_PRIOR = click.option(
    "--class-prior",
    metavar="PRIOR",
    callback=_parse_callback(parse_class_prior),
    help="Class proportions where DATA comes from: uniform, or yes=.02,no=.98.",
)
FOLD_BY = click.option(
    "--fold-by", metavar="COL", help="Keep rows with equal values of a column in one fold; it is then not a feature."
)
LEARNING_NAMES, READING_NAMES, DECISION_NAMES, SETTINGS_NAMES, WEIGHTED_NAMES = (
    [str(option.name) for option in options]
    for options in (_LEARNING, _READING, [*_POLICY, *_THRESHOLD_AIMS], _SETTINGS, _WEIGHTED)
)


def _add_options(command: Any, options: Collection[click.Option]) -> Any:
    """A function with more options, as click's own decorators leave them: the last comes first."""
    vars(command).setdefault("__click_params__", []).extend(reversed(list(options)))
    return command


planning_options = partial(_add_options, options=_PLANNING)  # how columns are counted
learning_options = partial(_add_options, options=_LEARNING)  # what is fitted, and how
policy_options = partial(_add_options, options=_POLICY)  # how probabilities become decisions
policy_and_aim_options = partial(_add_options, options=[*_POLICY, *_THRESHOLD_AIMS])
reading_options = partial(_add_options, options=_READING)  # how a source is read
_SEVERAL_MODELS = click.Option(["--model"], multiple=True, type=_MODEL_KINDS, help="Model to compare (repeatable).")
several_models_options = partial(_add_options, options=[_SEVERAL_MODELS, *_LEARNING[1:]])


def reading_options_except(*names: str) -> Callable:
    """How a source is read, without options that a command uses for something else."""
    return partial(_add_options, options=[option for option in _READING if option.name not in names])


def output_option(metavar: str, text: str, *, required: bool = False) -> Callable:
    """The output file, and whether to overwrite it."""
    output = click.Option(["--output", "-o"], metavar=metavar, type=MODEL, help=text, required=required)
    return partial(_add_options, options=[output, _FORCE])


def parse_policy(options: dict[str, Any], class_prior: Any = None) -> "tuple[Policy | None, dict[str, float]]":
    """Take the policy out of the options of a command, and the precision or recall its threshold is selected for."""
    from candide.model.policy import Policy

    given = {name: options.pop(name, None) for name in DECISION_NAMES}
    aim = {name: value for name in ("at_precision", "at_recall") if (value := given.pop(name)) is not None}
    if given["costs"] is not None:
        from candide.decisions.thresholds import read_costs

        given["costs"] = read_costs(given["costs"])
    if given["positive"] is not None and given["threshold"] is None and not aim:
        remedy = "pass --threshold, --at-precision or --at-recall with it"
        raise InputError("--positive names the class of a threshold", value=given["positive"], remedy=remedy)
    policy = Policy(**given, class_prior=class_prior)
    if aim and policy.can_change_class:
        remedy = "leave out --costs, --threshold, --abstain-below and --abstain-cost, or --at-precision and --at-recall"
        raise InputError("expected one decision rule, got two", value=aim, remedy=remedy)
    return (policy if policy or aim else None), aim


def parse_learning_options(options: dict[str, Any], data: str | None) -> dict[str, Any]:
    """The keywords of a fit: the model, and of its settings those that were typed."""
    source = get_current_context().get_parameter_source
    settings = {name: options.pop(name) for name in (*SETTINGS_NAMES, *WEIGHTED_NAMES)}
    typed = {name: value for name, value in settings.items() if source(name).name == "COMMANDLINE"}  # type: ignore[union-attr]
    return {"model": options.pop("model"), **typed, **parse_planning_options(options, data)}


def parse_planning_options(options: dict[str, Any], data: str | None) -> dict[str, Any]:
    """The keywords for how the columns of a source are counted, and how it is read."""
    reading = {name: options[name] for name in READING_NAMES if name in options}
    events = _parse_events(options["events"], data, reading) or "auto"
    return {"events": events, "drop": options["drop"], "weight": options["weight"], **reading}


def _parse_events(texts: Collection[str], data: str | None, reading: dict[str, Any]) -> dict[Any, str]:
    """Event models by column, or by columns that are modelled jointly."""
    from candide.engines.base import open_source
    from candide.events import resolve_event

    events: dict[Any, str] = {}
    columns: Collection[str] = ()
    if data not in (None, "-") and any("," in text for text in texts):  # a column name may contain a comma
        with open_source(data, ReadOptions(**reading)) as source:
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


def typed_arguments(names: Collection[str]) -> list[str]:
    """The arguments by which the options of these names were typed."""
    context, arguments = get_current_context(), list[str]()
    for option in context.command.params:
        if option.name not in names or context.get_parameter_source(option.name).name != "COMMANDLINE":  # type: ignore[union-attr]
            continue
        value = context.params[option.name]
        if isinstance(value, bool):
            arguments.append((option.opts if value else option.secondary_opts)[0])
            continue
        if isinstance(value, Mapping):
            value = ",".join(f"{name}={proportion!r}" for name, proportion in value.items())
        for text in map(str, value if isinstance(value, tuple) else [value]):
            arguments += [f"{option.opts[0]}={text}"] if text.startswith("-") else [option.opts[0], text]
    return arguments
