"""Make the golden files of the current format: model files whose predictions are recorded in numbers.json.

    python tests/golden/make.py

The numbers stay as they are, whatever the format: they are the promise.
"""

from pathlib import Path

import numpy as np

import candide as cd
from candide import events, priors, store

HERE = Path(__file__).parent


def rows() -> tuple[dict, list]:
    """Forty rows with every sort of column, made without a random generator whose stream might change."""
    t = np.arange(40)
    table = {
        "age": np.where(t % 13 == 5, np.nan, 30 + 10 * np.sin(t)),
        "income": np.exp(2 + np.cos(t)),
        "wait": 0.5 + (t * 7 % 11),
        "visits": t * 5 % 7,
        "score": np.sin(3.0 * t),
        "job": np.array(["cook", "smith", None, "naïve 🙂", ""], object)[t % 5],
        "floor": t % 3,
        "member": t % 4 == 1,
    }
    return table, np.array(["no", "yes", "perhaps"], object)[t * t % 7 % 3].tolist()


def model() -> cd.NaiveBayes:
    chosen = {
        "age": events.Gaussian(prior=priors.NormalInverseGamma(kappa=0.1)),
        "income": "lognormal",
        "wait": "exponential",
        "visits": "poisson",
        "score": events.Bernoulli(threshold=0.25, prior=priors.Beta(2.0, 3.0)),
        "job": "categorical",
        "floor": "categorical",
        "member": "categorical",
    }
    return cd.NaiveBayes(chosen, class_prior=priors.Dirichlet(0.5), param_priors={"categorical": "jeffreys"}).fit(
        *rows()
    )


if __name__ == "__main__":
    path = HERE / f"format-{store.FORMAT}.candide"
    fitted = model()
    for detail in store.DETAILS:
        name = path if detail == "tally" else path.with_suffix(f".{detail}.candide")
        fitted.save(name, detail=detail, provenance={"source": "tests/golden/make.py"})
