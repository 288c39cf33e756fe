"""A model as a graph of ONNX."""

from candide.export.onnx.model import build_onnx_model, to_onnx_bytes

__all__ = ["build_onnx_model", "to_onnx_bytes"]
