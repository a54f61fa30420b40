"""Pages are notebooks, too: what becomes of a page; case studies run in a kernel and show what their page shows."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
for tool in ("jupytext", "nbclient", "ipykernel"):
    pytest.importorskip(tool, reason=f"notebooks need {tool}: pip install 'lmemtest[notebooks]'")
sys.path[:0] = [str(ROOT / "docs"), str(Path(__file__).parent)]
import notebooks  # noqa: E402
from test_docs import blocks_of, tidy  # noqa: E402

PAGE = """# A page

Of [another page](other.md#there), and [a site](https://example.org).

![What it draws.](figures/drawn.png)

```python
found = answer()
print(found)
```

<!-- output -->
```text
An answer
```

```python data
private()
```

```python no-run
yours()
```

```bash
lmemtest demo
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_a_page_becomes_cells_without_outputs_figures_and_links_to_other_pages(page, monkeypatch):
    monkeypatch.delenv("LMEMTEST_DATA", raising=False)
    cells = [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in notebooks.notebook(page).cells]
    assert cells == [
        ("markdown", "# A page\n\nOf another page, and [a site](https://example.org).", None),
        ("code", "found = answer()\nfound", None),
        ("code", "private()", ["skip-execution"]),
        ("markdown", "```python .noeval\nyours()\n```", None),
        ("code", "%%bash\nlmemtest demo", None),
    ]


def test_what_needs_data_runs_where_they_are(page, monkeypatch):
    monkeypatch.setenv("LMEMTEST_DATA", "somewhere")
    assert notebooks.notebook(page).cells[2].metadata.get("tags") is None


def shown(cell: Any) -> str:
    """What a cell printed, and its last value as text."""
    return "".join(
        output.get("text") or output["data"].get("text/plain", "") + "\n"
        for output in cell.outputs
        if output.output_type in ("stream", "execute_result")
    )


@pytest.mark.level(2)
@pytest.mark.parametrize("case", sorted((ROOT / "docs").glob("case-*.md")), ids=lambda path: path.stem)
def test_a_case_study_runs_in_a_kernel_and_shows_what_its_page_shows(case, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    cells = [cell for cell in notebooks.executed(case, tmp_path).cells if cell.cell_type == "code"]
    blocks = [block for block in blocks_of(case.read_text(encoding="utf-8")) if block.info != "python no-run"]
    run = [block for block in blocks if block.info.startswith("python")]
    assert len(run) == len(cells)
    explored = [cell for cell in cells if cell.source.rstrip().endswith(".explore()")]
    assert all("application/vnd.jupyter.widget-view+json" in cell.outputs[0]["data"] for cell in explored)
    assert len(explored) == (case.stem == "case-optimisers")
    said = {block.line: shown(cell) for block, cell in zip(run, cells, strict=True) if cell.execution_count}
    pairs = [(said[a.line], b.body) for a, b in itertools.pairwise(blocks) if b.is_output and a.line in said]
    assert len(pairs) >= 2
    for printed, promised in pairs:
        assert tidy(printed) == tidy(promised)
    kinds = {kind for cell in cells for output in cell.outputs for kind in output.get("data", {})}
    assert {"text/html", "image/png"} <= kinds
    assert ("application/vnd.jupyter.widget-view+json" in kinds) == ("explore()" in case.read_text(encoding="utf-8"))
