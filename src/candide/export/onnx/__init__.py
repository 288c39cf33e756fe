"""A model as a graph of ONNX."""

from candide.export.onnx.model import graph_of, onnx

__all__ = ["graph_of", "onnx"]
