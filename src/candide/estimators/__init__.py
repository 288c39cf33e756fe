"""The scikit-learn face: estimators that meet its contract, and import it only when that is asked for."""
