"""How a model was chosen: the path of a forward selection, or the models of a family as a matrix of terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.modelling.select_model import ChosenModel
from lmemtest.core.validate import check_positive_int
from lmemtest.core.words import format_number, format_p
from lmemtest.plots import _canvas, _heat, _rows, _style

# In font sizes.
_ROW, _TIGHT, _COLUMN = 1.7, 1.15, 1.7
_BAR, _NUMBERS, _GAP = 4.5, 4.5, 1.2  # the bars of the differences, their numbers, and what parts them from the matrix
_HEAD_SHARE = 0.55  # the most of the height that the names of the terms may take
_NAMES = {"aic": "AIC", "bic": "BIC", "glrt": "AIC"}


@_canvas.draws(ChosenModel, source="select_model()")
def selection_plot(result: ChosenModel, /, *, max_rows: int = 12, ax: Axes | None = None) -> Axes:
    """Draw how a model was chosen.

    Parameters
    ----------
    result : ChosenModel
        From `lmemtest.select_model`.
    max_rows : int
        The most models to draw, of methods that rank them.

    Returns
    -------
    Axes
        Of "forward": a row per step with the criterion of the term that was added and of those that were not; the
        last row has what was left. Of "best" and "backward": a row per model, a dot for each of its terms beyond those
        that all models have, which are in a line below, and at the right how much worse than the best its criterion is.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> [label.get_text() for label in lt.select_model(runs, criterion="bic").plot().get_yticklabels()]
    ['start', '+ (1 | benchmark:algorithm)', '+ (1 | benchmark:seed)', 'nothing more']
    """
    max_rows = check_positive_int(max_rows, "max_rows")
    if result.method == "forward":
        return _rows.draw_rows(_path(result), ax)
    return _draw_models(result, result.models.head(max_rows), ax)


def _path(result: ChosenModel) -> _rows.Rows:
    likelihood = result.criterion == "glrt"
    path = result.path.assign(value=-2.0 * result.path["llf"] if likelihood else result.path[result.criterion])
    step, chosen = path["step"].to_numpy(dtype=np.intp), path["chosen"].to_numpy(dtype=bool)
    known = np.isfinite(path["value"].to_numpy(dtype=float))
    labels = ["start", *(f"+ {term}" for term in result.chosen)]
    left = known & ~chosen
    if (step[left] == len(labels)).any():
        labels.append("nothing more")
    kinds: tuple[_rows.Kind, ...] = (
        ("tried", left, {"colour": _style.NEUTRAL, "hollow": True}),
        ("added", chosen & known, {}),
    )
    if likelihood:
        aside = ["", *map(format_p, result.steps["p_value"].iloc[1:])]
        title = "p (adjusted)" if result.adjust == "holm" else "p"
        label = "−2 log-likelihood after the step (lower fits better)"
    else:
        changes = np.diff(result.steps[result.criterion].to_numpy(dtype=float))
        aside = ["", *(_number(change) for change in changes)]
        title = "change"
        counts = f", n = {result.bic_n}" if result.criterion == "bic" else ""
        label = f"{_NAMES[result.criterion]} after the step (lower is better{counts})"
    return _rows.Rows(
        labels=labels,
        series=_rows.Series.kinds(path, step, kinds, centre="value", ends=None),
        axis_label=label,
        aside=(*aside, *[""] * (len(labels) - len(aside))),
        aside_title=title,
        legend=bool(left.any()),
    )


def _number(value: float) -> str:
    return format_number(float(value), 3).replace("-", "−")


def _draw_models(result: ChosenModel, table: pd.DataFrame, ax: Axes | None) -> Axes:
    terms = [text for text in result.terms if any(text in own for own in table["terms"])] or ["(no term)"]
    right = _GAP + _BAR + _NUMBERS
    if ax is None:
        font = _style.base_font() / 72
        longest = 0.6 * max(map(len, terms))
        height = min((len(table) * _ROW + 6 + longest) * font, _canvas.PAGE_HEIGHT)
        ax = _canvas.new_axes(max((len(terms) * _COLUMN + right + 9) * font, 4.5), max(height, 2.5))
    names = [f"(singular) {rank}" if s else f"{rank}" for s, rank in zip(table["singular"], table["rank"], strict=True)]
    what = f"a matrix of {len(table)} models and {len(terms)} terms"
    room: dict[str, Any] = {"beside": (0.0, right, right), "above": 1.6, "head_share": _HEAD_SHARE}
    shared = f"Every model holds {_style.one_line(result.start.formula)}; dots: the terms that it has beyond."
    plan = _heat.grid(ax, names, terms, what, note=shared, tight=(_TIGHT, _TIGHT), upright=True, **room)
    size = plan.font
    for row, (own, best) in enumerate(zip(table["terms"], table["best"], strict=True)):
        ax.axhline(row, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
        has = np.array([text in own for text in terms])
        filled = _style.ACCENT if best else _style.INK  # a faint dot where the model lacks the term
        for mask, colour, scale, label in ((has, filled, 0.7, "_has"), (~has, _style.FAINT, 0.35, "_lacks")):
            places = np.flatnonzero(mask)
            style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": scale * size, "color": colour}
            ax.plot(places, np.full(len(places), row), label=label, clip_on=False, zorder=3, **style)
    for tick, best in zip(ax.get_yticklabels(), table["best"], strict=True):
        tick.set(color=_style.ACCENT if best else _style.INK, fontweight="bold" if best else "normal")
    side = ax.inset_axes((1.0 + _GAP * size / plan.inner[0], 0.0, _BAR * size / plan.inner[0], 1.0))
    _canvas.bare(side)
    delta = table["delta"].to_numpy(dtype=float)
    side.set_xlim(0.0, float(delta.max()) or 1.0)
    side.set_ylim(*ax.get_ylim())
    colours = [_style.ACCENT if best else _style.NEUTRAL for best in table["best"]]
    side.barh(np.arange(len(delta)), delta, height=0.55, color=colours, label="_delta")
    place: dict[str, Any] = {"textcoords": "offset points", "ha": "left", "annotation_clip": False}
    for row, value in enumerate(delta):
        text = _number(value) if value >= 0.005 else "0"
        words = _style.text_style(0.9 * size)
        side.annotate(text, (value, row), xytext=(0.3 * size, 0.0), va="center", **place, **words)
    words = _style.text_style(0.9 * size, color=_style.MUTED)
    title = f"Δ {_NAMES[result.criterion]}"
    side.annotate(title, (0.0, 1.0), xycoords="axes fraction", xytext=(0.0, 0.3 * size), va="bottom", **place, **words)
    return ax
