"""Policy: how probabilities become decisions. One record, shared by predict, evaluate, model files and commands.

Costs give the class of least expected cost (Elkan, 2001); a threshold gives a class wherever its probability is high
enough; without either, the most probable class is predicted. A row may be left to a person: if no class is probable
enough, or if every decision would cost more than that (Chow, 1970). If the class proportions where the model is used
differ from those it was trained on, its probabilities are adjusted first (Saerens, Latinne and Decaestecker, 2002).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Codes, Floats
from candide.data.labels import Labels
from candide.data.text_formats import to_plain_value
from candide.errors import InputError, unknown_name_error

_ABSTAIN_CODE = -1
_COSTS_REMEDY = 'pass {("yes", "no"): 5}: the cost of predicting no for a yes'


@dataclass(frozen=True)
class Policy:
    """How probabilities become decisions.

    ``costs`` holds costs by (true class, predicted class); those not given are 0 for a correct prediction and 1 for a
    wrong one. The class ``positive``, by default the second of two, is predicted when its probability is at least
    ``threshold``. The model abstains if the largest probability is below ``abstain_below``, or if the expected cost of
    every class exceeds ``abstain_cost``. ``class_prior`` holds the class proportions where the model is used.

    >>> from candide.data.labels import Labels
    >>> p, labels = np.log([[0.9, 0.1], [0.7, 0.3], [0.45, 0.55]]), Labels(("no", "yes"))
    >>> Policy(costs={("yes", "no"): 5}).make_rule(labels)(p).tolist()  # missing a yes costs 5, a false alarm 1
    [0, 1, 1]
    >>> Policy(threshold=0.2).make_rule(labels)(p).tolist(), Policy(abstain_below=0.8).make_rule(labels)(p).tolist()
    ([0, 1, 1], [0, -1, -1])
    >>> policy = Policy(class_prior={"no": 0.9, "yes": 0.1}).with_defaults(Policy(threshold=0.2, abstain_below=0.6))
    >>> policy.has_shifted_prior, policy.can_change_class, policy.explain_decision(1, np.log(0.6))
    (True, True, 'threshold 0.2')
    >>> Policy(threshold=0.2, abstain_below=0.6).describe(labels)
    "'yes' if its probability is at least 0.2; abstain if the largest probability is below 0.6"
    """

    costs: Mapping[tuple[Any, Any], float] | None = None
    threshold: float | None = None
    positive: Any = None
    abstain_below: float | None = None
    abstain_cost: float | None = None
    class_prior: Mapping[Any, float] | str | None = None  # or "uniform"; "empirical": that of the training rows
    log_odds: float | None = None  # of a threshold too close to 0 or 1 to be a number

    def __post_init__(self) -> None:
        if self.costs is not None and not isinstance(self.costs, Mapping):
            what = f"costs: {formatting.format_value(self.costs)} has no pairs of classes"
            raise InputError(what, value=self.costs, remedy=_COSTS_REMEDY)
        if self.class_prior is not None and not isinstance(self.class_prior, Mapping | str):
            what = f"class_prior: {formatting.format_value(self.class_prior)} does not name the classes"
            raise InputError(what, value=self.class_prior, remedy='pass {"no": 0.9, "yes": 0.1}, or "uniform"')
        for name in ("threshold", "abstain_below"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 <= value <= 1):
                what = f"{name}: {value} is not a probability"
                raise InputError(what, value=value, remedy="pass a number from 0 to 1")
        for key, cost in (("abstain_cost", self.abstain_cost), *(self.costs or {}).items()):
            if cost is not None and not _is_number(cost):
                name = key if isinstance(key, str) else f"costs of {_to_python(key)}"
                raise InputError(f"{name}: {cost} is not a cost", value=cost, remedy="pass a finite number")
        least = min([0.0, *(self.costs or {}).values()])
        if self.abstain_cost is not None and self.abstain_cost < least:
            what = f"abstain_cost: {self.abstain_cost:g} is below every cost, so the model would always abstain"
            raise InputError(what, value=self.abstain_cost, remedy=f"pass a number >= {least:g}")
        if self.costs is not None and self.threshold is not None:
            remedy = "pass one of them: costs determine a threshold"
            raise InputError("costs and a threshold exclude each other", value=self.threshold, remedy=remedy)
        if self.threshold is not None and self.log_odds is None:
            with np.errstate(divide="ignore"):
                odds = float(np.log(self.threshold) - np.log1p(-self.threshold))
            object.__setattr__(self, "log_odds", odds)

    def __repr__(self) -> str:
        values = [(f.name, getattr(self, f.name)) for f in fields(self) if f.name != "log_odds"]
        return f"Policy({', '.join(f'{name}={_to_python(value)!r}' for name, value in values if value is not None)})"

    def __bool__(self) -> bool:
        return self.can_change_class or self.class_prior is not None

    @property
    def can_change_class(self) -> bool:
        """Whether the prediction may differ from the most probable class."""
        return any(value is not None for value in (self.costs, self.threshold, self.abstain_below, self.abstain_cost))

    @property
    def has_shifted_prior(self) -> bool:
        """Whether the class proportions differ from those of the training rows."""
        prior = self.class_prior
        return prior is not None and not (isinstance(prior, str) and prior == "empirical")

    def explain_decision(self, predicted: int, log_p: float) -> str:
        """Return why a row is not given its most probable class, which has the log-probability ``log_p``."""
        if predicted == _ABSTAIN_CODE and self.abstain_below and log_p < np.log(self.abstain_below):
            return f"largest probability below {self.abstain_below:g}"
        if predicted == _ABSTAIN_CODE:
            return f"every class costs more than {self.abstain_cost:g}"
        return "least expected cost" if self.threshold is None else f"threshold {self._threshold_text}"

    @property
    def _threshold_text(self) -> str:
        is_rounded = self.threshold == 1 and self.log_odds is not None and np.isfinite(self.log_odds)
        return "nearly 1" if is_rounded else formatting.format_threshold(self.threshold or 0.0)

    def describe(self, labels: Labels) -> str:
        """Describe the policy in a line."""
        parts = []
        if self.costs is not None:
            special = [(pair, cost) for pair, cost in self.costs.items() if cost != (pair[0] != pair[1])]
            costs = [f"{to_plain_value(p)!r} for {to_plain_value(t)!r} costs {cost:g}" for (t, p), cost in special[:3]]
            costs += [f"{len(special) - 3} more"] if len(special) > 3 else []
            parts.append(f"least expected cost ({'; '.join(costs) or 'every error costs 1'})")
        if self.threshold is not None:
            label = labels.values[self._positive_code(labels)]
            parts.append(f"{label!r} if its probability is at least {self._threshold_text}")
        if self.abstain_below is not None:
            parts.append(f"abstain if the largest probability is below {self.abstain_below:g}")
        if self.abstain_cost is not None:
            parts.append(f"abstain if every class costs more than {self.abstain_cost:g}")
        if self.has_shifted_prior and self.class_prior is not None:
            proportions = parse_class_proportions(self.class_prior, labels).tolist()
            each = [f"{label}={p:.4g}" for label, p in zip(labels.values, proportions, strict=True)]
            rest = f" and {len(each) - 8} more" if len(each) > 8 else ""
            parts.append(f"class proportions {', '.join(each[:8])}{rest}")
        return "; ".join(parts)

    def with_defaults(self, other: "Policy | None") -> "Policy":
        """Return this policy, with the decision rule or the class prior of another if it has none."""
        if other is None:
            return self
        policy = self if self.can_change_class else replace(other, class_prior=None)
        return replace(policy, class_prior=other.class_prior if self.class_prior is None else self.class_prior)

    def make_rule(self, labels: Labels) -> "DecisionRule":
        """Return the decision rule for these classes."""
        costs, seen = 1.0 - np.eye(len(labels)), set[tuple[int, int]]()
        for pair, cost in (self.costs or {}).items():
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise InputError(f"costs: {pair!r} is not a pair of classes", value=pair, remedy=_COSTS_REMEDY)
            true, predicted = (_class_code("costs", label, labels) for label in pair)
            if (true, predicted) in seen:  # written in two ways
                what = f"costs: {_to_python(pair)} is given twice"
                raise InputError(what, value=pair, remedy="give each pair one cost")
            seen.add((true, predicted))
            costs[true, predicted] = cost
        matrix = None if self.costs is None and self.abstain_cost is None else costs
        positive = None if self.log_odds is None else self._positive_code(labels)
        return DecisionRule(matrix, positive, self.log_odds, self.abstain_below, self.abstain_cost)

    def _positive_code(self, labels: Labels) -> int:
        if self.positive is None:
            if len(labels) == 2:
                return 1
            what = f"a threshold needs a class, and there are {len(labels)}: {formatting.format_list(labels.values)}"
            raise InputError(what, value=self.threshold, remedy="name it: positive=... (--positive)")
        return _class_code("positive", self.positive, labels)


@dataclass(frozen=True, eq=False)
class DecisionRule:
    """A policy for classes by their codes."""

    costs: Floats | None = None  # (true class, predicted class)
    positive: int | None = None
    log_odds: float | None = None
    abstain_below: float | None = None
    abstain_cost: float | None = None

    def __call__(self, log_posterior: Floats) -> Codes:
        """Return the predicted class of each row, (row,); -1 for an abstention."""
        if self.costs is not None:
            expected = np.exp(log_posterior) @ self.costs
            predicted = expected.argmin(axis=1)
            if self.abstain_cost is not None:
                predicted = np.where(expected.min(axis=1) > self.abstain_cost, _ABSTAIN_CODE, predicted)
        elif (c := self.positive) is not None:  # where its log-odds reach the threshold
            rest = log_posterior.copy()
            rest[:, c] = -np.inf
            with np.errstate(invalid="ignore"):
                odds = log_posterior[:, c] - np.logaddexp.reduce(rest, axis=1)
            odds = np.nan_to_num(odds, posinf=np.inf, neginf=-np.inf)
            predicted = np.where(odds >= self.log_odds, c, rest.argmax(axis=1))
        else:
            predicted = log_posterior.argmax(axis=1)
        if self.abstain_below is None:
            return predicted
        with np.errstate(divide="ignore"):
            return np.where(log_posterior.max(axis=1) < np.log(self.abstain_below), _ABSTAIN_CODE, predicted)

    def to_export_dict(self) -> dict[str, Any]:
        """Return the rule as data, without what is not set."""
        with np.errstate(divide="ignore"):
            log_abstain = None if self.abstain_below is None else np.log(self.abstain_below)
        names = "costs", "abstain_cost", "positive", "log_odds"
        values = {**{name: getattr(self, name) for name in names}, "log_abstain": log_abstain}
        return {name: value for name, value in values.items() if value is not None}

    def cost(self, y: Codes, predicted: Codes) -> Floats:
        """Return the cost of each prediction, (row,); an abstention costs ``abstain_cost``, or nothing."""
        k = int(max(y.max(initial=0), predicted.max(initial=0))) + 1
        costs = 1.0 - np.eye(k) if self.costs is None else self.costs
        return np.where(predicted < 0, self.abstain_cost or 0.0, costs[y, predicted])


@dataclass(frozen=True, eq=False)
class ShiftedCalibrator:
    """A calibrator, followed by a shift to other class proportions."""

    calibrator: Any
    log_ratio: Floats  # (classes,) of the new and the old proportions

    def __call__(self, log_posterior: Floats) -> Floats:
        joint = self.calibrator(log_posterior) + self.log_ratio
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)

    def to_export_dict(self) -> dict[str, Any]:
        """Return the calibrator as data, with the shift of its log-probabilities."""
        return {**self.calibrator.to_export_dict(), "shift": self.log_ratio}


def parse_class_proportions(proportions: Mapping[Any, float] | str, labels: Labels) -> Floats:
    """Return proportions that sum to 1, (classes,), however the classes are written."""
    if isinstance(proportions, str):
        if proportions != "uniform":
            raise unknown_name_error("class prior", proportions, ("uniform", "proportions by class"))
        return np.full(len(labels), 1.0 / len(labels))
    parsed = np.full(len(labels), np.nan)
    for label, proportion in proportions.items():
        code, name = _class_code("class_prior", label, labels), to_plain_value(label)
        if not (_is_number(proportion) and proportion >= 0):
            problem = f"class_prior: {proportion} is not a proportion of {name!r}"
            raise InputError(problem, value=proportion, remedy="pass a number from 0 to 1")
        if not np.isnan(parsed[code]):
            problem, remedy = (
                f"class_prior: the proportion of {name!r} is given twice",
                "give each class one proportion",
            )
            raise InputError(problem, value=label, remedy=remedy)
        parsed[code] = proportion
    if np.isnan(parsed).any():
        absent = [label for label, p in zip(labels.values, parsed, strict=True) if np.isnan(p)]
        problem = f"class_prior has no proportion of {formatting.format_list(absent, 3)}"
        raise InputError(problem, value=absent, remedy="give every class a proportion, 0 if it never occurs")
    total = float(parsed.sum())
    if not np.isclose(total, 1.0):
        remedy = f"divide them by {total:g}" if total > 0 else "give some class a proportion above 0"
        raise InputError(f"class_prior: the proportions sum to {total:g}, not to 1", value=total, remedy=remedy)
    return parsed / total


def _class_code(what: str, label: Any, labels: Labels) -> int:
    code = labels.find_code(label)
    if code is None:
        raise unknown_name_error(f"class in {what}", label, labels.values)
    return code


def _to_python(value: Any) -> Any:
    """Return a value with Python's strings and numbers in the place of NumPy's."""
    if isinstance(value, Mapping):
        return {_to_python(name): _to_python(item) for name, item in value.items()}
    return tuple(map(_to_python, value)) if isinstance(value, tuple) else to_plain_value(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))


PolicyLike = Policy | Mapping[str, Any] | None


def make_policy(policy: PolicyLike) -> Policy | None:
    """Return a policy, given as such or as a mapping of its fields."""
    if policy is None or isinstance(policy, Policy):
        return policy
    names = [f.name for f in fields(Policy) if f.name != "log_odds"]
    for name in policy:
        if name not in names:
            raise unknown_name_error("field of a policy", name, names)
    return Policy(**policy)
