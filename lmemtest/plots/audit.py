"""Realised false-positive rates of models, beside the nominal one."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.checks.audit import RECOMMENDED
from lmemtest.core.result import Answer
from lmemtest.plots import _canvas, _rows, _style


@_canvas.draws("audit", source="audit()")
def audit_plot(audit: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the false-positive rates of an audit with their intervals.

    Parameters
    ----------
    audit : Answer
        From `lmemtest.audit`.

    Returns
    -------
    Axes
        The x axis is in percent, with a line at the nominal level; row i, from the top, is the i-th unit.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, algorithm=["RS", "HB"])
    >>> ax = lt.audit(runs, n_draws=4, unit="benchmark", rng=1).plot()
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['exchange by benchmark']
    """
    units = list(audit.exchanged)
    models = audit.rates["model"].unique().tolist()
    series = []
    for offset, model in enumerate(models):
        rates = audit.rates[audit.rates["model"] == model]
        centre, low, high = 100.0 * rates[["rate", "ci_low", "ci_high"]].to_numpy().T
        good = model == RECOMMENDED
        series.append(
            _rows.Series(
                name=f"{model} model",
                row=np.array([units.index(unit) for unit in rates["unit"]], dtype=np.intp),
                centre=centre,
                low=low,
                high=high,
                colour=_style.ACCENT if good else _style.WARM,
                marker=_style.marker(0 if good else 1),
                offset=offset,
            )
        )
    content = _rows.Rows(
        labels=[f"exchange by {unit}" for unit in units],
        series=tuple(series),
        lanes=len(models),
        legend=True,
        reference=100.0 * audit.alpha,
        axis_label="Tables with a significant difference where there is none, % (95 % interval)\n"
        f"The line marks the nominal {100.0 * audit.alpha:g} %.",
    )
    return _rows.draw_rows(content, ax)
