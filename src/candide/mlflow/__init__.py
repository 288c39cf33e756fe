"""Models in MLflow: saved, logged and loaded there, and asked as any other of its models.

:func:`save_model`, :func:`log_model` and :func:`load_model` are those of a flavor of MLflow. It needs MLflow, whole or
skinny (``pip install 'candide[mlflow]'``).
"""

from candide.mlflow.flavor import load_model, log_model, save_model

__all__ = ["load_model", "log_model", "save_model"]
