"""Figures as the PDF that a paper includes: as wide as a column, the same bytes whenever they are drawn."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes

from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots._canvas import detached_figures
from lmemtest.plots.cd_diagrams import axes_of_width, cd_diagram
from lmemtest.plots.pairs import pairs_plot

COLUMN = 3.3  # inches of a column of a paper with two of them


def column_diagram(decisions: Decisions) -> bytes:
    """The critical-difference diagram in a column.

    Examples
    --------
    >>> import pandas as pd
    >>> p = pd.DataFrame([[1, 0.04], [0.04, 1]], ["A", "B"], ["A", "B"])
    >>> decisions = Decisions.of({"A": 1.2, "B": 2.1}, p, direction="minimize")
    >>> column_diagram(decisions)[:4]
    b'%PDF'
    """
    with detached_figures():
        return pdf_of(cd_diagram(decisions, ax=axes_of_width(decisions, COLUMN)))


def column_differences(pairs: Comparisons) -> bytes:
    """Differences with their intervals in a column.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("AB") * 4, "task": list("wwxxyyzz"), "loss": [1.0, 2, 10, 19, 7, 16, 50, 99]}
    >>> pairs = lt.fit_lmm("loss ~ tool + (1|task)", runs).emmeans("tool").pairs()
    >>> column_differences(pairs) == column_differences(pairs)
    True
    """
    with detached_figures():
        return pdf_of(pairs_plot(pairs, width=COLUMN))


def pdf_of(axes: Axes) -> bytes:
    """A figure as PDF without a date, with letters as TrueType: journals refuse those of Type 3."""
    figure: Any = axes.figure
    buffer = io.BytesIO()
    with rc_context({"pdf.fonttype": 42}):
        figure.savefig(buffer, format="pdf", metadata=dict.fromkeys(("CreationDate", "Creator", "Producer")))
    return buffer.getvalue()
