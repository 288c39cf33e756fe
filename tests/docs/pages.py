"""The site's own functions for running pages, from ``docs/hooks.py``."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_spec = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
assert _spec
assert _spec.loader
hooks = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = hooks  # a dataclass looks its module up
_spec.loader.exec_module(hooks)
