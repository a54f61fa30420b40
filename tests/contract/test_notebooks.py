"""Pages are notebooks, too: what becomes of a page, and case studies run in a kernel and show what their page shows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jupytext", reason="notebooks are made by it: pip install 'lmemtest[notebooks]'")
nbclient = pytest.importorskip("nbclient", reason="notebooks are run by it: pip install 'lmemtest[notebooks]'")
pytest.importorskip("ipykernel", reason="notebooks are run in it: pip install 'lmemtest[notebooks]'")
