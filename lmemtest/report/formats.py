"""An analysis in the format that a file's suffix names."""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any

from lmemtest.report.document import plain

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.report.analysis import Analysis, Progress

__all__ = ["content_of", "json_of", "png_of"]

DPI = 200


def content_of(analysis: Analysis, suffix: str, progress: Progress | None) -> str | bytes:
    """What a file with this suffix holds."""
    if suffix == ".csv":
        return analysis.to_csv()
    if suffix == ".json":
        return analysis.to_json()
    if suffix == ".png":
        return png_of(analysis)
    render = {".md": analysis.to_markdown, ".txt": analysis.to_text, ".tex": analysis.to_latex}
    return render.get(suffix, analysis.to_html)(progress=progress)


def json_of(analysis: Analysis) -> str:
    """Roles, findings, model, answer, ranking and pairs, with all digits; what is not known is null."""
    from lmemtest.report.wording import headline
    from lmemtest.studies.variation.model_components import components_frame

    runs = analysis.runs
    found = {
        "generator": f"lmemtest {analysis.versions['lmemtest']}",
        "call": analysis.call,
        "versions": analysis.versions,
        "roles": {name: list(value) if isinstance(value, tuple) else value for name, value in runs.roles().items()},
        "size": analysis.check.overview,
        "findings": _records(analysis.check.to_frame("findings")),
        "formula": analysis.formula,
        "alpha": analysis.alpha,
        "adjust": analysis.pairs.adjust,
        "ddf": analysis.means.ddf,
        "headline": [plain(sentence) for sentence in headline(analysis)],
        "ranking": _records(analysis.to_frame()),
        "pairs": _records(analysis.pairs.to_frame()),
        "variance_components": _records(components_frame(analysis.components)),
    }
    return json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    """A value as json knows it."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


def png_of(analysis: Analysis) -> bytes:
    """The critical-difference diagram as an image."""
    from lmemtest.plots import cd_diagram, detached_figures

    with detached_figures():
        figure: Any = cd_diagram(analysis.separation).figure
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return buffer.getvalue()
