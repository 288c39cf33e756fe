"""Typical rows: those with which a model compares others, and what it says of rows that are just like them.

>>> import candide as cd
>>> X = np.random.default_rng(0).normal(size=(400, 2))
>>> fitted = cd.BayesClassifier().fit({"a": X[:, 0], "b": X[:, 1]}, (X**2).sum(axis=1) < 1).fitted_
>>> rows = prototype_rows(fitted)
>>> far = int(np.argmax(np.square([rows["a"], rows["b"]]).sum(axis=0)))  # from the middle
>>> rows["typical_row"][far] == far + 1, rows["speaks_for"][far], rows["nats"][far] > 0.5
(True, False, True)
"""

from itertools import pairwise
from typing import Any

import numpy as np

from candide.model.fitted import FittedModel


def prototype_rows(fitted: FittedModel) -> dict[Any, list[Any]]:
    """Columns of values, in the units of the table; none where nothing is compared."""
    for part, law in zip(fitted.plan.parts, fitted.model.distributions, strict=True):
        if part.prototypes is None:
            continue
        typical, ends = part.prototypes.prototypes, np.cumsum([0, *(one.width for one in part.encodings)])
        terms = law.contributions(part.prototypes.read(typical))[:, :, 0]
        order = np.sort(terms, axis=1)
        out: dict[Any, list[Any]] = {"typical_row": list(range(1, len(typical) + 1))}
        for name, encoding, (start, _) in zip(part.columns, part.encodings, pairwise(ends), strict=True):
            out[name] = encoding.decode(typical[:, start]).tolist()
        out["speaks_for"] = [fitted.labels.values[c] for c in terms.argmax(axis=1)]
        out["nats"] = (order[:, -1] - order[:, -2]).tolist() if order.shape[1] > 1 else [0.0] * len(order)
        return out
    return {}
