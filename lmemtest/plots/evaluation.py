"""Accuracies of an evaluation, on these tasks and for tasks like these."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from lmemtest.bench.evaluation.evaluated import Evaluation
from lmemtest.bench.evaluation.tables import groups_column
from lmemtest.core.validate import check_positive_int
from lmemtest.core.words import percent
from lmemtest.plots import _canvas, _rows, _style


@_canvas.draws(Evaluation, source="evaluate()")
def evaluation_plot(found: Evaluation, /, *, max_rows: int = _rows.MOST_ROWS, ax: Axes | None = None) -> Axes:
    """Draw the accuracy of each model with its interval for either question, and the groups beside it.

    Parameters
    ----------
    found : Evaluation
        From `lmemtest.evaluate`.
    max_rows : int, >= 2
        Of more models, those at both ends are drawn, and a row and the axis label say how many were left out.

    Returns
    -------
    Axes
        Models from the best at the top. The letters at the right are those of these tasks, and after the bar those of
        tasks like these: models that share a letter cannot be distinguished. Of more than 12 models there are sets of
        ranks in their place. Intervals are not simultaneous, so whether they overlap does not tell whether models
        differ.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"model": ["A"] * 8 + ["B"] * 8, "item": [*range(8)] * 2, "right": [0, 1] * 4 + [1, 1, 0, 1] * 2}
    >>> axes = lt.evaluate(table, model="model", item="item", score="right").plot()
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['B', 'A']
    """
    shown = _rows.Shown.ends(len(found.models), check_positive_int(max_rows, "max_rows", minimum=2))
    table = found.models.iloc[shown.kept]
    names = {"these": ""} if found.like is None else found.populations
    looks: tuple[dict[str, Any], ...] = (
        {"colour": _style.ACCENT},
        {"colour": _style.colour(1), "marker": "s", "hollow": True},
    )
    series = tuple(
        _rows.Series.of(
            table,
            shown.place,
            centre=f"accuracy_{suffix}",
            ends=(f"ci_low_{suffix}", f"ci_high_{suffix}"),
            name=name,
            offset=lane,
            **look,
        )
        for lane, ((suffix, name), look) in enumerate(zip(names.items(), looks, strict=False))
    )
    letters = [" | ".join(row) for row in zip(*(groups_column(table, suffix) for suffix in names), strict=True)]
    reading = "models that share a letter cannot be distinguished" if found.lettered else "ranks that are left open"
    for row in shown.headers:
        letters.insert(row, "")
    measured = found.noun.capitalize() + ", mean over tasks" * (found.n_tasks > 1)
    content = _rows.Rows(
        labels=shown.labels(found.models["model"]),
        series=series,
        axis_label=f"{measured}\n{_style.nobreak(percent(1.0 - found.alpha))} intervals, not simultaneous; "
        f"{'' if found.lettered else 'at the right: '}{reading}{shown.sentence('models, those in the middle,')}",
        headers=shown.headers,
        lanes=len(names),
        aside=tuple(letters),
        aside_title="groups" if found.lettered else "ranks",
        legend=len(names) > 1,
    )
    return _rows.draw_rows(content, ax)
