"""An ONNX graph under construction: tensors with the operators of numbers.

Every number is a double. Operations that onnxruntime lacks for doubles, such as log(1 + x), are made of others.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError

ROWS_DIMENSION = "rows"  # name of the axis of rows, of any length


def _operator(kind: str) -> Callable[..., "Tensor"]:
    return lambda tensor, *others: tensor.graph.op(kind, tensor, *others)


class Tensor:
    """A value in a graph, by its name."""

    __array_ufunc__ = None  # an array to the left of it leaves the operation to it

    def __init__(self, graph: "Graph", name: str):
        self.graph, self.name = graph, name

    __add__ = __radd__ = _operator("Add")
    __mul__ = __rmul__ = _operator("Mul")
    __sub__, __truediv__, __matmul__ = _operator("Sub"), _operator("Div"), _operator("MatMul")
    __lt__, __le__ = _operator("Less"), _operator("LessOrEqual")
    __gt__, __ge__ = _operator("Greater"), _operator("GreaterOrEqual")
    __and__, __or__, equals = _operator("And"), _operator("Or"), _operator("Equal")
    log, exp = _operator("Log"), _operator("Exp")

    def __rsub__(self, other: Any) -> "Tensor":
        return self.graph.op("Sub", other, self)

    @property
    def is_nan(self) -> "Tensor":
        return self.graph.op("IsNaN", self)

    def to_int64(self) -> "Tensor":
        return self.graph.op("Cast", self, to=self.graph.types.INT64)

    def to_double(self) -> "Tensor":
        return self.graph.op("Cast", self, to=self.graph.types.DOUBLE)

    def sum(self, axis: int, keep: bool = False) -> "Tensor":
        return self.graph.op("ReduceSum", self, np.array([axis]), keepdims=int(keep))

    def max(self, axis: int) -> "Tensor":
        return self.graph.op("ReduceMax", self, np.array([axis]), keepdims=1)

    def argmax(self) -> "Tensor":
        """(row,) the index of the first largest value in each row."""
        return self.graph.op("ArgMax", self, axis=1, keepdims=0)

    def unsqueeze(self, *axes: int) -> "Tensor":
        return self.graph.op("Unsqueeze", self, np.array(axes))

    def transpose(self, *axes: int) -> "Tensor":
        return self.graph.op("Transpose", self, perm=list(axes))

    def slice_axis(self, axis: int, start: int, stop: int) -> "Tensor":
        return self.graph.op("Slice", self, np.array([start]), np.array([stop]), np.array([axis]))

    def column(self, j: int) -> "Tensor":
        return self.slice_axis(1, j, j + 1)

    def squeeze(self, axis: int) -> "Tensor":
        return self.graph.op("Squeeze", self, np.array([axis]))

    def take(self, places: "Tensor", axis: int = 0) -> "Tensor":
        return self.graph.op("Gather", self, places, axis=axis)


class Graph:
    """Nodes in the order in which they are made, and the constants that they share."""

    def __init__(self, reserved_names: Collection[str] = ()):
        try:
            import onnx
        except ImportError as error:
            raise InputError("needs the package onnx", remedy="pip install 'candide[onnx]'") from error
        self.onnx: Any = onnx
        self.types = self.onnx.TensorProto
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: dict[Any, Any] = {}
        self._mark, self._made = "/", 0
        while any(name.startswith(self._mark) for name in reserved_names):  # columns have other names
            self._mark += "/"

    def input(self, name: str, kind: str) -> Tensor:
        """(row, 1) a column, of "double" or "string"."""
        of = self.types.DOUBLE if kind == "double" else self.types.STRING
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, of, [ROWS_DIMENSION, 1]))
        return Tensor(self, name)

    def op(self, kind: str, *inputs: Any, domain: str = "", **attributes: Any) -> Tensor:
        """The result of an operation on tensors, and on numbers and arrays, which become constants."""
        names = [(x if isinstance(x, Tensor) else self.constant(x)).name for x in inputs]
        self._made += 1
        out = Tensor(self, f"{self._mark}{self._made}")
        self.nodes.append(self.onnx.helper.make_node(kind, names, [out.name], domain=domain, **attributes))
        return out

    def constant(self, value: Any) -> Tensor:
        """An array of doubles, integers, booleans or text, stored once."""
        array = np.asarray(value)
        array = array.astype(np.float64) if array.dtype.kind == "f" else array
        key = (array.shape, str(array.dtype), tuple(array.ravel()) if array.dtype.kind in "OU" else array.tobytes())
        if key not in self.constants:
            name = f"{self._mark}c{len(self.constants)}"
            array = array.astype(object) if array.dtype.kind == "U" else array
            self.constants[key] = self.onnx.numpy_helper.from_array(array, name)
        return Tensor(self, self.constants[key].name)

    def branch(
        self, condition: Tensor, yes: Callable[[], list[Tensor]], no: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """The doubles of one of two graphs: the first where the condition holds."""
        bodies, outside, helper = {}, self.nodes, self.onnx.helper
        for make, name in ((yes, "then"), (no, "else")):
            self.nodes = []
            outputs = [helper.make_tensor_value_info(tensor.name, self.types.DOUBLE, None) for tensor in make()]
            bodies[f"{name}_branch"] = helper.make_graph(self.nodes, name, [], outputs)
        self.nodes = outside
        names = [f"{self._mark}{self._made}{letter}" for letter in "abcdef"[: len(outputs)]]
        self.nodes.append(helper.make_node("If", [condition.name], names, **bodies))
        return [Tensor(self, name) for name in names]

    def where(self, condition: Any, yes: Any, no: Any) -> Tensor:
        return self.op("Where", condition, yes, no)

    def concat(self, tensors: Sequence[Tensor], axis: int = 1) -> Tensor:
        return tensors[0] if len(tensors) == 1 else self.op("Concat", *tensors, axis=axis)

    def log1p(self, x: Tensor) -> Tensor:
        """log(1 + x) of x >= 0: with what 1 + x lost of a small x restored (Kahan)."""
        u = 1.0 + x
        small = self.where(u.equals(1.0), x, u.log() * (x / (u - 1.0)))
        return self.where(x < 1.0, small, u.log())

    def one_minus_exp(self, log: Tensor) -> Tensor:
        """1 - exp(x) of x <= 0, in the same way."""
        u = log.exp()
        near = self.where(u.equals(1.0), -1.0 * log, (1.0 - u) * (log / u.log()))
        return self.where(log > -1.0, near, 1.0 - u)

    def log_softmax(self, logs: Tensor) -> Tensor:
        """(row, class) minus the logarithm of their sum, after subtracting the largest."""
        moved = logs - logs.max(1)
        return moved - moved.exp().sum(1, keep=True).log()

    def count_below(self, edges: NDArray, x: Tensor) -> Tensor:
        """(row, 1) how many of ascending numbers lie below x."""
        return (x > edges[None, :]).to_int64().sum(1, keep=True)

    def interpolate(self, x: Tensor, knots: NDArray, values: NDArray) -> Tensor:
        """Linear interpolation, constant beyond the ends; NaN stays NaN."""
        if len(knots) == 1:
            return x * 0.0 + values[0]
        inside = self.op("Max", self.op("Min", x, knots[-1]), knots[0])
        above = self.op("Max", self.op("Min", self.count_below(knots, inside), len(knots) - 1), 1)
        unit = 1.0 if knots[-1] / 4 - knots[0] / 4 < 2.0**1020 else 0.25  # differences of huge numbers would overflow
        lines = [knots[:-1] * unit, np.diff(knots * unit), values[:-1], np.diff(values)]
        start, width, low, rise = (self.constant(line).take(above - 1) for line in lines)
        return low + rise * ((inside * unit - start) / width)
