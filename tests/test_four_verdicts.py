"""The verdicts of docs/families.md on HPO-B: 13 methods, 86 tasks in 16 search spaces, 5 seeds."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "four_verdicts.py"


@pytest.mark.level(2)
@pytest.mark.usefixtures("data_dir")
def test_one_table_has_the_verdicts_of_the_page(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [SCRIPT.name])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    found = [int(n) for n in re.findall(r"(\d+) of 78 pairs differ", capsys.readouterr().out)]
    assert found == [41, 28, 31, 28, 14, 19, 27, 8, 18, 6]
