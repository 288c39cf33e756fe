"""Score expressions: the score of a distribution as a few operations that every export target can print.

A distribution builds its score once, from ``x`` (the values of its columns) and its parameters. Values are (feature,
class) arrays; a value by class alone holds for every feature. Guards against missing, impossible and huge values are
part of the expression, so that targets cannot differ in them. ``to_export_dict`` lists the operations as data: each
step is an operation and its arguments, which are numbers, names of parameters, ``"x"``, or ``"#i"`` for step i.

>>> z = (X - parameter("loc", np.array([[1.0], [3.0]]))) * 0.5
>>> to_export_dict(-1.0 * z)
{'score': [['subtract', 'x', 'loc'], ['multiply', '#0', 0.5], ['multiply', -1.0, '#1']], 'loc': array([[1., 3.]])}
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.distributions.base import MAX_SCORED_VALUE

OPERATIONS = (
    *("add", "subtract", "multiply", "divide", "clip", "square", "log", "log1p", "exp", "log_rising"),
    *("less", "less_equal", "equal", "is_missing", "where"),
    *("sum", "class_sum", "class_max", "stack"),  # over features, over classes; values by class as features
    *("lookup", "cells", "tables", "distance", "conditional"),  # of several columns or levels
    *("tokens", "polya"),
)


def _operator(operation: str, *, is_reversed: bool = False) -> "Callable[[Any, Any], Expression]":
    """A method of two operands."""
    return lambda a, b: Expression(operation, *((b, a) if is_reversed else (a, b)))


class Expression:
    """An operation and its arguments: expressions and numbers."""

    def __init__(self, operation: str, *arguments: Any, parameters: dict[str, Any] | None = None):
        self.operation, self.arguments, self.parameters = operation, arguments, parameters or {}

    __add__ = __radd__ = _operator("add")
    __sub__ = _operator("subtract")
    __rsub__ = _operator("subtract", is_reversed=True)
    __mul__ = _operator("multiply")
    __rmul__ = _operator("multiply", is_reversed=True)
    __truediv__ = _operator("divide")
    __lt__ = _operator("less")
    __le__ = _operator("less_equal")
    equals = _operator("equal")

    @property
    def is_missing(self) -> "Expression":
        return Expression("is_missing", self)


def _function(operation: str) -> "Callable[..., Expression]":
    return lambda *arguments: Expression(operation, *arguments)


X = Expression("x")
where = _function("where")  # condition, yes, no
log = _function("log")
exp = _function("exp")
square = _function("square")  # x, factor: (x factor)^2, infinite where that is too large
log1p = _function("log1p")  # factor, x: factor log(1 + x) of x >= 0
log_rising = _function("log_rising")  # a, x: log Gamma(a + x) / Gamma(a) of x >= 0
total = _function("sum")  # over the features
class_sum = _function("class_sum")  # over the classes, for every class
class_max = _function("class_max")


def parameter(name: str, values: NDArray) -> Expression:
    """A parameter by its name: a (class, feature) array, or one of the classes alone."""
    return Expression("parameter", parameters={name: np.asarray(values).T})


def clip(x: Expression, low: float = -MAX_SCORED_VALUE) -> Expression:
    """``x`` from ``low`` to the largest value that is scored; missing values stay missing."""
    return Expression("clip", x, low, MAX_SCORED_VALUE)


def stack(*values: Expression) -> Expression:
    """Values by class, as the features of one."""
    return values[0] if len(values) == 1 else Expression("stack", *values)


def joint(operation: str, *arguments: Any, **parameters: Any) -> Expression:
    """An operation on all columns at once, which takes its parameters by their names."""
    return Expression(operation, *arguments, parameters=parameters)


def distance(name: str, roots: NDArray, means: Floats) -> Expression:
    """|R x - mean|^2 of each class; ``roots`` has one lower triangle for all classes, or one for each."""
    lower = np.tril_indices(roots.shape[-1])
    triangles = roots.reshape(-1, *roots.shape[-2:])[:, *lower]
    return Expression("distance", name, parameters={f"{name}_roots": triangles, f"{name}_means": means})


def zero_if_missing(x: Expression, contributions: Expression) -> Expression:
    return where(x.is_missing, 0.0, contributions)


def times(x: Expression, name: str, slope: Floats) -> Expression:
    """x slope, with 0 * -inf = 0."""
    product = x * parameter(name, slope)
    return product if np.isfinite(slope).all() else where(x.equals(0.0), 0.0, product)


def to_export_dict(expression: Expression) -> dict[str, Any]:
    """The steps of an expression, each once, and its parameters."""
    steps: list[list[Any]] = []
    names: dict[int, Any] = {}
    parameters: dict[str, Any] = {}

    def add(node: Any) -> Any:
        if not isinstance(node, Expression):
            return node
        if id(node) not in names:
            parameters.update(node.parameters)
            if node.operation == "x":
                names[id(node)] = "x"
            elif node.operation == "parameter":
                [names[id(node)]] = node.parameters
            else:
                steps.append([node.operation, *map(add, node.arguments)])
                names[id(node)] = f"#{len(steps) - 1}"
        return names[id(node)]

    add(expression)
    return {"score": steps, **parameters}
