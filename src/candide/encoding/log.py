"""Log: positive numbers, tallied as their logarithm. Transformed: numbers tallied as an own function of them.

The block holds the numbers themselves: a fitted law of them knows how it was reached.

>>> Log().apply([1.0, np.e, None]).tolist()
[0.0, 1.0, nan]
>>> (
...     TransformedEncoding(np.sqrt).apply([4.0, -1.0]).tolist(),
...     TransformedEncoding(np.sqrt) == TransformedEncoding(np.cbrt),
... )
([2.0, -inf], False)
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide.encoding.identity import NumericEncoding
from candide.errors import InputError


@dataclass(frozen=True)
class Log(NumericEncoding):
    """Numbers > 0; what is tallied is ln x."""

    has_transform: ClassVar[bool] = True

    def tally_values(self, x: NDArray) -> NDArray:
        bad = self.invalid_mask(x)
        if bad.any():
            raise InputError(
                f"value {x[bad][0]:g} in data whose logarithm is modelled",
                value=x[bad][0].item(),
                remedy=f"pass {self.requirement}, or another event model",
            )
        with np.errstate(over="ignore"):
            return np.log(x.astype(np.float64))

    def invalid_mask(self, x: NDArray) -> NDArray[np.bool_]:
        return x <= 0

    @property
    def has_bounds(self) -> bool:
        return True

    @property
    def requirement(self) -> str:
        return "values > 0"

    def sql(self, x: Any, dialect: Any) -> Any:
        """Of what is not positive NULL, so that the query runs: it shows in the least value, and is refused there."""
        from sqlglot import exp

        positive = exp.GT(this=x.copy(), expression=exp.Literal.number("0"))
        log = exp.Ln(this=x.copy()) if dialect is None else dialect.log(x.copy())
        return exp.Case(ifs=[exp.If(this=positive, true=log)])


@dataclass(frozen=True)
class TransformedEncoding(NumericEncoding):
    """Numbers, of which a Python function is tallied; equal where ``equality_key`` is, else the function."""

    has_transform: ClassVar[bool] = True
    is_python_only: ClassVar[bool] = True

    function: Callable[[NDArray], NDArray] = field(compare=False)
    equality_key: Any = None

    def __post_init__(self) -> None:
        if self.equality_key is None:
            object.__setattr__(self, "equality_key", self.function)

    @classmethod
    def from_event(cls, event: Any) -> "TransformedEncoding":
        """The transform of an own event model: equal where family and settings are, whatever the prior."""
        settings = sorted((key, value) for key, value in vars(event).items() if key != "prior")
        return cls(event.transform, (type(event), tuple(settings)))

    def tally_values(self, x: NDArray) -> NDArray:
        """The transform in float64; -inf, which no engine lets pass, where it has no value."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            out = self.function(x.astype(np.float64))
        return np.where(np.isnan(out) & ~np.isnan(x), -np.inf, out)
