"""Export: a model as plain data, and as one file of another language that scores rows without Candide.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> parameters(Fitted(garden()))["classes"]
['lavender', 'sage', 'thyme']
"""

from candide.export.javascript import javascript
from candide.export.onnx import onnx
from candide.export.packed import as_json
from candide.export.parameters import parameters
from candide.export.python import python

__all__ = ["as_json", "javascript", "onnx", "parameters", "python"]
