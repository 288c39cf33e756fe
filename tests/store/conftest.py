"""A model file to change, and the helper modules beside the tests, importable under any import mode."""

import sys
from pathlib import Path

import pytest

from candide import store
from candide.demo import garden
from candide.model.fitted import FittedModel

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def path(tmp_path):
    store.save(FittedModel(garden()), tmp_path / "m.candide")
    return tmp_path / "m.candide"
