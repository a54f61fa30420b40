"""Pages are notebooks, too: what becomes of a page, and case studies run in a kernel and show what their page shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from test_docs import ROOT, blocks_of, tidy

for tool in ("jupytext", "nbclient", "ipykernel"):
    pytest.importorskip(tool, reason=f"notebooks need {tool}: pip install 'lmemtest[notebooks]'")
sys.path.insert(0, str(ROOT / "docs"))
import notebooks  # noqa: E402

CASES = [page for page in notebooks.pages() if page.stem.startswith("case-")]
