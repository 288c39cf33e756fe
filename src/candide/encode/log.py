"""Log: positive numbers, tallied as their logarithm. Transformed: numbers tallied as an own function of them.

The block holds the numbers themselves: a fitted law of them knows how it was reached.

>>> Log().apply([1.0, np.e, None]).tolist()
[0.0, 1.0, nan]
>>> Transformed(np.sqrt).apply([4.0, -1.0]).tolist(), Transformed(np.sqrt) == Transformed(np.cbrt)
([2.0, -inf], False)
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide.encode.identity import Numbers
from candide.errors import InputError


@dataclass(frozen=True)
class Log(Numbers):
    """Numbers > 0; what is tallied is ln x."""

    transforms: ClassVar[bool] = True

    def tallied(self, x: NDArray) -> NDArray:
        bad = self.outside(x)
        if bad.any():
            raise InputError(
                f"value {x[bad][0]:g} in data whose logarithm is modelled",
                value=x[bad][0].item(),
                remedy=f"pass {self.needs}, or another event model",
            )
        with np.errstate(over="ignore"):
            return np.log(x.astype(np.float64))

    def outside(self, x: NDArray) -> NDArray[np.bool_]:
        return x <= 0

    @property
    def bounded(self) -> bool:
        return True

    @property
    def needs(self) -> str:
        return "values > 0"

    def sql(self, x: Any, dialect: Any) -> Any:
        """Of what is not positive NULL, so that the query runs: it shows in the least value, and is refused there."""
        from sqlglot import exp

        positive = exp.GT(this=x.copy(), expression=exp.Literal.number("0"))
        log = exp.Ln(this=x.copy()) if dialect is None else dialect.log(x.copy())
        return exp.Case(ifs=[exp.If(this=positive, true=log)])


@dataclass(frozen=True)
class Transformed(Numbers):
    """Numbers, of which a Python function is tallied; equal where what ``tells_apart`` is, else the function."""

    transforms: ClassVar[bool] = True
    python_only: ClassVar[bool] = True

    function: Callable[[NDArray], NDArray] = field(compare=False)
    tells_apart: Any = None

    def __post_init__(self) -> None:
        if self.tells_apart is None:
            object.__setattr__(self, "tells_apart", self.function)

    @classmethod
    def of(cls, event: Any) -> "Transformed":
        """The transform of an own event model: equal where family and settings are, whatever the prior."""
        settings = sorted((key, value) for key, value in vars(event).items() if key != "prior")
        return cls(event.transform, (type(event), tuple(settings)))

    def tallied(self, x: NDArray) -> NDArray:
        """The transform in float64; -inf, which no engine lets pass, where it has no value."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            out = self.function(x.astype(np.float64))
        return np.where(np.isnan(out) & ~np.isnan(x), -np.inf, out)
