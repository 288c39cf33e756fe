"""Export: a model as plain data, and as one file of another language that scores rows without Candide.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> export_parameters(FittedModel(garden()))["classes"]
['lavender', 'sage', 'thyme']
"""

from candide.export.onnx import to_onnx_bytes
from candide.export.parameters import export_parameters, pack_json
from candide.export.targets import to_javascript, to_python

__all__ = ["export_parameters", "pack_json", "to_javascript", "to_onnx_bytes", "to_python"]
