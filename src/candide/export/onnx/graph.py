"""An ONNX graph under construction: tensors with the operators of numbers.

Every number is a double. Operations that onnxruntime lacks for doubles, such as log(1 + x), are composed of others.

>>> graph = Graph({"x"})
>>> x = graph.input("x", "double")
>>> (2.0 * x + 1.0).name, [node.op_type for node in graph.nodes]
('/2', ['Mul', 'Add'])
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError

OPSETS = (("", 18), ("ai.onnx.ml", 4))
IR_VERSION = 8
ROWS_DIMENSION = "rows"  # name of the axis of rows, of any length


def import_onnx() -> Any:
    """The package ``onnx``; an error with a remedy where it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise InputError("needs the package onnx", remedy="pip install 'candide[onnx]'") from error
    return onnx


class Tensor:
    """A value in a graph, by its name."""

    __array_ufunc__ = None  # an array to the left of it leaves the operation to it

    def __init__(self, graph: "Graph", name: str):
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> "Tensor":
        return self.graph.op("Add", self, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> "Tensor":
        return self.graph.op("Mul", self, other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> "Tensor":
        return self.graph.op("Sub", self, other)

    def __rsub__(self, other: Any) -> "Tensor":
        return self.graph.op("Sub", other, self)

    def __truediv__(self, other: Any) -> "Tensor":
        return self.graph.op("Div", self, other)

    def __matmul__(self, other: Any) -> "Tensor":
        return self.graph.op("MatMul", self, other)

    def __lt__(self, other: Any) -> "Tensor":
        return self.graph.op("Less", self, other)

    def __le__(self, other: Any) -> "Tensor":
        return self.graph.op("LessOrEqual", self, other)

    def __gt__(self, other: Any) -> "Tensor":
        return self.graph.op("Greater", self, other)

    def __ge__(self, other: Any) -> "Tensor":
        return self.graph.op("GreaterOrEqual", self, other)

    def equals(self, other: Any) -> "Tensor":
        return self.graph.op("Equal", self, other)

    def __and__(self, other: "Tensor") -> "Tensor":
        return self.graph.op("And", self, other)

    def __or__(self, other: "Tensor") -> "Tensor":
        return self.graph.op("Or", self, other)

    @property
    def is_nan(self) -> "Tensor":
        return self.graph.op("IsNaN", self)

    def log(self) -> "Tensor":
        return self.graph.op("Log", self)

    def exp(self) -> "Tensor":
        return self.graph.op("Exp", self)

    def to_int64(self) -> "Tensor":
        """Booleans as the integers 0 and 1."""
        return self.graph.op("Cast", self, to=self.graph.types.INT64)

    def to_double(self) -> "Tensor":
        return self.graph.op("Cast", self, to=self.graph.types.DOUBLE)

    def sum(self, axis: int, keep: bool = False) -> "Tensor":
        return self.graph.op("ReduceSum", self, np.array([axis]), keepdims=int(keep))

    def max(self, axis: int) -> "Tensor":
        return self.graph.op("ReduceMax", self, np.array([axis]), keepdims=1)

    def argmax(self) -> "Tensor":
        """(row,) the index of the first of the largest in each row."""
        return self.graph.op("ArgMax", self, axis=1, keepdims=0)

    def unsqueeze(self, *axes: int) -> "Tensor":
        return self.graph.op("Unsqueeze", self, np.array(axes))

    def transpose(self, *axes: int) -> "Tensor":
        return self.graph.op("Transpose", self, perm=list(axes))

    def slice_axis(self, axis: int, start: int, stop: int) -> "Tensor":
        return self.graph.op("Slice", self, np.array([start]), np.array([stop]), np.array([axis]))

    def columns(self, start: int, stop: int) -> "Tensor":
        """Some of the second axis."""
        return self.slice_axis(1, start, stop)

    def take(self, places: "Tensor", axis: int = 0) -> "Tensor":
        """The values at indices along an axis."""
        return self.graph.op("Gather", self, places, axis=axis)


class Graph:
    """Nodes in the order in which they are made, and the constants that they share."""

    def __init__(self, reserved_names: Collection[str] = ()):
        self.onnx = import_onnx()
        self.types = self.onnx.TensorProto
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: dict[Any, Any] = {}
        self._mark, self._made = "/", 0
        while any(
            name.startswith(self._mark) for name in reserved_names
        ):  # names of the graph differ from those of columns
            self._mark += "/"

    def input(self, name: str, kind: str) -> Tensor:
        """(row, 1) a column, of "double" or "string"."""
        of = self.types.DOUBLE if kind == "double" else self.types.STRING
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, of, [ROWS_DIMENSION, 1]))
        return Tensor(self, name)

    def op(self, kind: str, *inputs: Any, domain: str = "", **attributes: Any) -> Tensor:
        """The result of an operation on tensors, and on numbers and arrays, which become constants."""
        names = [one.name if isinstance(one, Tensor) else self.constant(one).name for one in inputs]
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
            self.constants[key] = self.onnx.numpy_helper.from_array(_text_as_objects(array), name)
        return Tensor(self, self.constants[key].name)

    def branch(
        self, condition: Tensor, yes: Callable[[], list[Tensor]], no: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """The doubles of one of two graphs: the first where the condition holds."""
        bodies, outside = [], self.nodes
        for make, name in ((yes, "yes"), (no, "no")):
            self.nodes = []
            made = [self.onnx.helper.make_tensor_value_info(one.name, self.types.DOUBLE, None) for one in make()]
            bodies.append(self.onnx.helper.make_graph(self.nodes, name, [], made))
        self.nodes = outside
        out = [Tensor(self, f"{self._mark}{self._made}{letter}") for letter in "abcdef"[: len(made)]]
        how = {"then_branch": bodies[0], "else_branch": bodies[1]}
        self.nodes.append(self.onnx.helper.make_node("If", [condition.name], [one.name for one in out], **how))
        return out

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
        start, width, low, rise = (self.constant(one).take(above - 1) for one in lines)
        return low + rise * ((inside * unit - start) / width)

    def build_model(
        self, outputs: Sequence[tuple[Tensor, str, Any, list[Any]]], description: str, metadata: dict[str, str]
    ) -> Any:
        """The model; ``outputs`` has tensors with the name, type and axes of each."""
        helper = self.onnx.helper
        out = [helper.make_tensor_value_info(name, of, axes) for _, name, of, axes in outputs]
        named = [helper.make_node("Identity", [tensor.name], [name]) for tensor, name, _, _ in outputs]
        graph = helper.make_graph([*self.nodes, *named], "model", self.inputs, out, list(self.constants.values()))
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="candide", doc_string=description
        )
        helper.set_model_props(model, metadata)
        return model


def _text_as_objects(array: NDArray) -> NDArray:
    return array.astype(object) if array.dtype.kind == "U" else array
