"""Policy: how probabilities become decisions. One record, which predict, evaluate, model files and commands share.

Costs give the class of least expected cost (Elkan, 2001); a threshold gives a class wherever its probability is high
enough; without either the most probable class is given. A row may be left to a person: where no class is probable
enough, or where every decision would cost more than that (Chow, 1970). The shares of the classes where the model is
used, where they are not those that it learned, turn its probabilities first (Saerens, Latinne and Decaestecker, 2002).

>>> p = np.log([[0.9, 0.1], [0.7, 0.3], [0.45, 0.55]])
>>> labels = Labels(("no", "yes"))
>>> Policy(costs={("yes", "no"): 5}).make_rule(labels)(p).tolist()  # to miss a yes costs 5, a false alarm 1
[0, 1, 1]
>>> Policy(threshold=0.2).make_rule(labels)(p).tolist(), Policy(abstain_below=0.8).make_rule(labels)(p).tolist()
([0, 1, 1], [0, -1, -1])
>>> Policy(costs={("yes", "no"): 5}, referral=0.4).make_rule(labels)(p).tolist()
[-1, -1, -1]
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data import value_matching
from candide.data.blocks import Codes, Floats
from candide.data.labels import Labels
from candide.data.value_identity import to_plain_value
from candide.errors import InputError, unknown_name_error

__all__ = ["DecisionRule", "Labels", "Policy", "parse_class_proportions"]

_ABSTAIN_CODE = -1  # the code of a row that is left to a person
_COSTS_REMEDY = 'pass {("yes", "no"): 5}: what it costs that a yes is taken for a no'


@dataclass(frozen=True)
class Policy:
    """How probabilities become decisions; what is not given has no part in it.

    ``costs`` has by (true class, class given) what that costs: 0 of what is right and 1 of what is wrong, where
    nothing is said. ``threshold`` is the probability from which on a row is given the class ``positive``, of two
    classes the second if none is named. Rows whose most probable class has less than ``abstain_below``, or of which
    any decision would cost more than ``referral``, are left open. ``class_prior`` has the shares of the classes
    where the model is used.

    >>> Policy(threshold=0.2, abstain_below=0.6)
    Policy(threshold=0.2, abstain_below=0.6)
    >>> both = Policy(class_prior={"no": 0.9, "yes": 0.1}).with_defaults(Policy(threshold=0.2))
    >>> (
    ...     both.can_change_class,
    ...     both.has_shifted_prior,
    ...     both.make_rule(Labels(("no", "yes")))(np.log([[0.7, 0.3]])).tolist(),
    ... )
    (True, True, [1])
    >>> Policy(threshold=1.2)
    Traceback (most recent call last):
        ...
    candide.errors.InputError: threshold: 1.2 is no probability; pass a number from 0 to 1
    """

    costs: Mapping[tuple[Any, Any], float] | None = None
    threshold: float | None = None
    positive: Any = None
    abstain_below: float | None = None
    referral: float | None = None
    class_prior: Mapping[Any, float] | str | None = None  # "uniform"; "empirical": as learned, whatever was said before
    log_odds: float | None = None  # of the threshold, which may be too near 0 or 1 to be a number

    def __post_init__(self) -> None:
        if self.costs is not None and not isinstance(self.costs, Mapping):
            raise InputError(
                f"costs: {formatting.format_value(self.costs)} has no pairs of classes",
                value=self.costs,
                remedy=_COSTS_REMEDY,
            )
        if self.class_prior is not None and not isinstance(self.class_prior, Mapping | str):
            what = (
                f"class_prior: {formatting.format_value(self.class_prior)} does not say which share is of which class"
            )
            raise InputError(what, value=self.class_prior, remedy='pass {"no": 0.9, "yes": 0.1}, or "uniform"')
        for name in ("threshold", "abstain_below"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 <= value <= 1):
                raise InputError(f"{name}: {value} is no probability", value=value, remedy="pass a number from 0 to 1")
        for what, cost in (("referral", self.referral), *(self.costs or {}).items()):
            if cost is not None and not _is_number(cost):
                named = what if isinstance(what, str) else f"costs of {_to_python(what)}"
                raise InputError(f"{named}: {cost} is no cost", value=cost, remedy="pass a finite number")
        least = min([0.0, *(self.costs or {}).values()])
        if self.referral is not None and self.referral < least:
            remedy = f"pass a number >= {least:g}: no decision costs less, and every row would be left open"
            raise InputError(f"referral: {self.referral:g} is no cost", value=self.referral, remedy=remedy)
        if self.costs is not None and self.threshold is not None:
            remedy = "pass one of them: costs choose a threshold themselves"
            raise InputError("costs and a threshold both decide", value=self.threshold, remedy=remedy)
        if self.threshold is not None and self.log_odds is None:
            with np.errstate(divide="ignore"):
                odds = float(np.log(self.threshold) - np.log1p(-self.threshold))
            object.__setattr__(self, "log_odds", odds)

    def __repr__(self) -> str:
        known = [(f.name, getattr(self, f.name)) for f in fields(self) if f.name != "log_odds"]
        return f"Policy({', '.join(f'{name}={_to_python(value)!r}' for name, value in known if value is not None)})"

    def __bool__(self) -> bool:
        return self.can_change_class or self.class_prior is not None

    @property
    def can_change_class(self) -> bool:
        """Whether any row may be given something else than its most probable class."""
        return any(value is not None for value in (self.costs, self.threshold, self.abstain_below, self.referral))

    @property
    def has_shifted_prior(self) -> bool:
        """Whether the classes have other shares than those learned."""
        return self.class_prior is not None and not (
            isinstance(self.class_prior, str) and self.class_prior == "empirical"
        )

    def explain_decision(self, predicted: int, log_p: float) -> str:
        """By what a row is given another class than its most probable one, of ``log_p``, or is left open.

        >>> (
        ...     Policy(costs={("yes", "no"): 5}).explain_decision(1, np.log(0.6)),
        ...     Policy(threshold=0.2).explain_decision(1, np.log(0.6)),
        ... )
        ('least expected cost', 'threshold 0.2')
        >>> (
        ...     Policy(threshold=0.2, abstain_below=0.9).explain_decision(-1, np.log(0.6)),
        ...     Policy(referral=0.3).explain_decision(-1, np.log(0.6)),
        ... )
        ('less sure than 0.9', 'any class costs more than 0.3')
        """
        if predicted == _ABSTAIN_CODE and self.abstain_below and log_p < np.log(self.abstain_below):
            return f"less sure than {self.abstain_below:g}"
        if predicted == _ABSTAIN_CODE:
            return f"any class costs more than {self.referral:g}"
        return "least expected cost" if self.threshold is None else f"threshold {self._threshold_text}"

    @property
    def _threshold_text(self) -> str:
        nearly = self.threshold == 1 and self.log_odds is not None and np.isfinite(self.log_odds)
        return "nearly 1" if nearly else formatting.format_threshold(self.threshold or 0.0)

    def describe(self, labels: Labels) -> str:
        """The policy in a line.

        >>> Policy(threshold=0.2, abstain_below=0.6).describe(Labels(("no", "yes")))
        "'yes' from a probability of 0.2 on; left open if less sure than 0.6"
        >>> Policy(costs={("yes", "no"): 5}, referral=0.4).describe(Labels(("no", "yes")))
        "least expected cost ('yes' taken for 'no' costs 5); left open if any class costs more than 0.4"
        """
        found = []
        if self.costs is not None:
            wrong = [(pair, cost) for pair, cost in self.costs.items() if cost != (pair[0] != pair[1])]
            each = [
                f"{to_plain_value(true)!r} taken for {to_plain_value(given)!r} costs {cost:g}"
                for (true, given), cost in wrong[:3]
            ]
            more = [f"{len(wrong) - 3} more"] if len(wrong) > 3 else []
            found.append(f"least expected cost ({'; '.join([*each, *more]) or 'every error costs 1'})")
        if self.threshold is not None:
            found.append(
                f"{labels.values[self._positive_code(labels)]!r} from a probability of {self._threshold_text} on"
            )
        if self.abstain_below is not None:
            found.append(f"left open if less sure than {self.abstain_below:g}")
        if self.referral is not None:
            found.append(f"left open if any class costs more than {self.referral:g}")
        if self.has_shifted_prior and self.class_prior is not None:
            shares = zip(labels.values, parse_class_proportions(self.class_prior, labels).tolist(), strict=True)
            some = [f"{label}={share:.4g}" for label, share in shares]
            found.append(f"class shares {', '.join(some[:8])}{f' and {len(some) - 8} more' if len(some) > 8 else ''}")
        return "; ".join(found)

    def with_defaults(self, other: "Policy | None") -> "Policy":
        """What this one says; where it does not decide, or has no shares, what another says."""
        if other is None:
            return self
        found = self if self.can_change_class else replace(other, class_prior=None)
        return replace(found, class_prior=other.class_prior if self.class_prior is None else self.class_prior)

    def make_rule(self, labels: Labels) -> "DecisionRule":
        """The same for classes that are known: codes instead of names."""
        k = len(labels)
        costs = None if self.costs is None else _cost_matrix(self.costs, labels)
        if costs is None and self.referral is not None:
            costs = 1.0 - np.eye(k)
        positive = None if self.log_odds is None else self._positive_code(labels)
        return DecisionRule(costs, positive, self.log_odds, self.abstain_below, self.referral)

    def _positive_code(self, labels: Labels) -> int:
        if self.positive is None:
            if len(labels) == 2:
                return 1
            what = f"a threshold is of one class, and there are {len(labels)}: {formatting.format_list(labels.values)}"
            raise InputError(what, value=self.threshold, remedy="name it: positive=... (--positive)")
        return _class_code("positive", self.positive, labels)


@dataclass(frozen=True, eq=False)
class DecisionRule:
    """A policy for classes by their codes."""

    costs: Floats | None = None  # (true class, class given)
    positive: int | None = None
    log_odds: float | None = None
    abstain_below: float | None = None
    referral: float | None = None

    def __call__(self, log_posterior: Floats) -> Codes:
        """(row,) the class that each row is given; -1 where it is left open."""
        if self.costs is not None:
            expected = np.exp(log_posterior) @ self.costs
            given = expected.argmin(axis=1)
            if self.referral is not None:
                given = np.where(expected.min(axis=1) > self.referral, _ABSTAIN_CODE, given)
        elif self.positive is not None:
            given = self._apply_threshold(log_posterior, self.positive)
        else:
            given = log_posterior.argmax(axis=1)
        if self.abstain_below is None:
            return given
        with np.errstate(divide="ignore"):
            return np.where(log_posterior.max(axis=1) < np.log(self.abstain_below), _ABSTAIN_CODE, given)

    def _apply_threshold(self, log_posterior: Floats, c: int) -> Codes:
        """The class where its log-odds reach the threshold, elsewhere the most probable of the others."""
        rest = log_posterior.copy()
        rest[:, c] = -np.inf
        with np.errstate(invalid="ignore"):
            odds = np.nan_to_num(log_posterior[:, c] - np.logaddexp.reduce(rest, axis=1), posinf=np.inf, neginf=-np.inf)
        return np.where(odds >= self.log_odds, c, rest.argmax(axis=1))

    def to_export_dict(self) -> dict[str, Any]:
        """The rule as data; what has no part in it is left out."""
        with np.errstate(divide="ignore"):
            least = None if self.abstain_below is None else np.log(self.abstain_below)
        held = {"costs": self.costs, "referral": self.referral, "positive": self.positive, "log_odds": self.log_odds}
        return {name: value for name, value in {**held, "log_abstain": least}.items() if value is not None}

    def cost(self, y: Codes, predicted: Codes) -> Floats:
        """(row,) what it came to that a row of a class was given one; a row left open costs a referral."""
        k = int(max(y.max(initial=0), predicted.max(initial=0))) + 1
        costs = 1.0 - np.eye(k) if self.costs is None else self.costs
        return np.where(predicted < 0, self.referral or 0.0, costs[y, predicted])


@dataclass(frozen=True, eq=False)
class ShiftedCalibrator:
    """Probabilities that are bent, and then turned to other shares of the classes."""

    calibrator: Any
    log_ratio: Floats  # (classes,) of the shares there and here

    def __call__(self, log_posterior: Floats) -> Floats:
        joint = self.calibrator(log_posterior) + self.log_ratio
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)

    def to_export_dict(self) -> dict[str, Any]:
        """The curve as data, and what is added to its log-probabilities."""
        return {**self.calibrator.to_export_dict(), "shift": self.log_ratio}


def parse_class_proportions(
    proportions: Mapping[Any, float] | str, labels: Labels, what: str = "class_prior"
) -> Floats:
    """(classes,) shares by class that sum to one, whichever way the classes are written."""
    if isinstance(proportions, str):
        if proportions != "uniform":
            raise unknown_name_error("class prior", proportions, ("uniform", "shares by class"))
        return np.full(len(labels), 1.0 / len(labels))
    found = np.full(len(labels), np.nan)
    for label, share in proportions.items():
        code = _class_code(what, label, labels)
        if not (_is_number(share) and share >= 0):
            remedy = "pass a number from 0 to 1"
            raise InputError(f"{what}: {share} is no share of {to_plain_value(label)!r}", value=share, remedy=remedy)
        if not np.isnan(found[code]):
            remedy = "give each class one share"
            raise InputError(
                f"{what}: the share of {to_plain_value(label)!r} is said twice", value=label, remedy=remedy
            )
        found[code] = share
    if np.isnan(found).any():
        gone = [label for label, share in zip(labels.values, found, strict=True) if np.isnan(share)]
        remedy = "give every class a share, 0 where it is never met"
        raise InputError(f"{what} has no share of {formatting.format_list(gone, 3)}", value=gone, remedy=remedy)
    total = float(found.sum())
    if not np.isclose(total, 1.0):
        remedy = f"divide them by {total:g}" if total > 0 else "give some class a share"
        raise InputError(f"{what}: the shares sum to {total:g}, and not to 1", value=total, remedy=remedy)
    return found / total


def _cost_matrix(costs: Mapping[tuple[Any, Any], float], labels: Labels) -> Floats:
    out, told = 1.0 - np.eye(len(labels)), set[tuple[int, int]]()
    for pair, cost in costs.items():
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise InputError(f"costs: {pair!r} is no pair of classes", value=pair, remedy=_COSTS_REMEDY)
        true, given = (_class_code("costs", label, labels) for label in pair)
        if (true, given) in told:  # written in two ways
            raise InputError(f"costs: those of {_to_python(pair)} are said twice", value=pair, remedy="say them once")
        told.add((true, given))
        out[true, given] = cost
    return out


def _class_code(what: str, label: Any, labels: Labels) -> int:
    code = value_matching.find_code(label, labels)
    if code is None:
        raise unknown_name_error(f"class in {what}", label, labels.values)
    return code


def _to_python(value: Any) -> Any:
    """A value with Python's own texts and numbers in the place of NumPy's."""
    if isinstance(value, Mapping):
        return {_to_python(name): _to_python(one) for name, one in value.items()}
    return tuple(map(_to_python, value)) if isinstance(value, tuple) else to_plain_value(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))


PolicyLike = Policy | Mapping[str, Any] | None


def make_policy(policy: PolicyLike) -> Policy | None:
    """A policy as it is, or of its fields by name."""
    if policy is None or isinstance(policy, Policy):
        return policy
    names = [f.name for f in fields(Policy) if f.name != "log_odds"]
    for name in policy:
        if name not in names:
            raise unknown_name_error("field of a policy", name, names)
    return Policy(**policy)
