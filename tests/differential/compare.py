"""The driver: one table through every entry point, and what differs from the first."""

import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from tests.differential.entry_points import PREDICTIONS, Asked, fits
from tests.differential.tables import random_case

from candide.errors import CandideError

CLOSE = 1e-9
MAY_REFUSE = ("SQL in", "ONNX")  # text, levels that are times


@dataclass
class Found:
    """What a run has found: differences, and how often an entry point answered and refused."""

    differences: list = field(default_factory=list)
    answered: Counter = field(default_factory=Counter)
    refused: Counter = field(default_factory=Counter)  # by entry point and message

    def add(self, name, case, expected, answer):
        """Compare an answer, which is a function, with what is expected."""
        try:
            found = answer()
        except CandideError as error:
            if not name.startswith(MAY_REFUSE):
                self.differences.append((case.seed, name, f"refused: {str(error)[:200]}", case.kinds))
            self.refused[name, error.problem[:60]] += 1
            return
        except Exception as error:
            self.differences.append((case.seed, name, f"{type(error).__name__}: {str(error)[:200]}", case.kinds))
            return
        if found is None:
            return
        self.answered[name] += 1
        away = np.abs(np.array(found, float) - expected).max()
        if not away <= CLOSE:
            self.differences.append((case.seed, name, f"{away:.2g}", case.kinds))


def compare(seed, estimator, folder, found, postgres=None, n_fits=None):
    """One table: fitted in several ways (all, or a few that the seed chooses), and predicted in all."""
    case = random_case(seed, estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ways = fits(case, estimator, folder)
        first, *others = ways
        try:
            model = ways[first]()
        except CandideError as error:  # a table that cannot be fitted: by no other way either
            found.refused[first, error.problem[:60]] += 1
            return
        asked = Asked(model, case, folder, postgres)
        expected = model.predict_proba(asked.x)
        rng = np.random.default_rng(seed)
        for name in others if n_fits is None else rng.permutation(others)[:n_fits].tolist():
            found.add(name, case, expected, lambda name=name: ways[name]().predict_proba(asked.x))
        for name, predict in PREDICTIONS.items():
            if name != "SQL in PostgreSQL" or postgres is not None:
                found.add(name, case, expected, lambda predict=predict: predict(asked))
