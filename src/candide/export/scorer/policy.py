"""Policies: which class a row is given, where that is not the most probable one.

>>> make_decision_rule({"costs": [0, 1, 5, 0]}, 2)([math.log(0.7), math.log(0.3)])  # to miss the second class costs 5
1
>>> make_decision_rule({"log_abstain": math.log(0.8)}, 2)([math.log(0.7), math.log(0.3)])
-1
"""

import math
from collections.abc import Callable
from typing import Any

from candide.export.scorer.numbers import decode_numbers, log_sum_exp, split_rows


def make_decision_rule(policy: dict[str, Any], k: int) -> Callable[[list[float]], int]:
    """What makes the place of a class of log-probabilities; -1 where a row is left to a person."""
    costs, positive = split_rows(decode_numbers(policy.get("costs", [])), k), policy.get("positive")
    referral, least = float(policy.get("referral", math.inf)), float(policy.get("log_abstain", -math.inf))

    def given(logs: list[float]) -> int:
        if costs:
            shares = [math.exp(one) for one in logs]
            expected = [sum(p * cost for p, cost in zip(shares, own, strict=True)) for own in zip(*costs, strict=True)]
            return -1 if min(expected) > referral else expected.index(min(expected))
        if positive is None:
            return logs.index(max(logs))
        rest = [-math.inf if c == positive else one for c, one in enumerate(logs)]
        taken = logs[positive] - log_sum_exp(rest) >= float(policy["log_odds"])
        return positive if taken else rest.index(max(rest))

    return lambda logs: -1 if max(logs) < least else given(logs)
