"""Save, log and load models in MLflow. It needs MLflow, whole or skinny (``pip install 'candide[mlflow]'``)."""

from candide.mlflow.flavor import load_model, log_model, save_model

__all__ = ["load_model", "log_model", "save_model"]
