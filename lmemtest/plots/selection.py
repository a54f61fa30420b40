"""How a model was chosen: the path of a forward selection, or the models of a search as a matrix of terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._validate import check_positive_int
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _fitting, _rows, _style
from lmemtest.studies.modelling.forward import SelectionResult
from lmemtest.studies.modelling.lattice import SearchResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# In font sizes.
_ROW, _TIGHT_ROW, _COLUMN = 1.7, 1.15, 1.7
_BAR, _GAP = 9.0, 1.2  # the bars of the differences and what parts them from the matrix
_HEAD_SHARE = 0.55  # the most of the height that the names of the terms may take
_HIGHEST = 9.5  # inches
_NAMES = {"aic": "AIC", "bic": "BIC", "glrt": "AIC"}


def selection_plot(result: SelectionResult | SearchResult, *, most: int = 12, ax: Axes | None = None) -> Axes:
    """Draw how a model was chosen.

    Parameters
    ----------
    result : SelectionResult or SearchResult
        From `lmemtest.select_terms` or `lmemtest.search_models`.
    most : int
        The most models of a search to draw.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        Of a selection: a row per step with the criterion of the term that was added and of those that were not; the
        last row has what was left. Of a search: a row per model, a dot for each of its terms, and at the right how
        much worse than the best its criterion is.

    Raises
    ------
    ArgumentError
        If `result` is neither, or `ax` is too small for readable text.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.selection import selection_plot
    >>> from lmemtest.studies.modelling.forward import select_terms
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> ax = selection_plot(select_terms(runs, criterion="bic"))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['start', '+ (1 | benchmark:algorithm)', '+ (1 | benchmark:seed)', 'nothing more']
    """
    _canvas.check_axes(ax)
    most = check_positive_int(most, "most")
    if isinstance(result, SelectionResult):
        return _rows.draw_rows(_path(result), ax)
    if isinstance(result, SearchResult):
        return _draw_models(result, result.table.head(most), ax)
    raise ArgumentError(f"result must be the result of select_terms() or search_models(), got {type(result).__name__}.")


# ---------------------------------------------------------------------- the path


def _path(result: SelectionResult) -> _rows.Rows:
    path = result.path
    value = -2.0 * path["llf"] if result.criterion == "glrt" else path[result.criterion]
    step, chosen = path["step"].to_numpy(), path["chosen"].to_numpy()
    known = np.isfinite(value.to_numpy())
    labels = ["start", *(f"+ {_style.one_line(term)}" for term in result.chosen)]
    left = known & ~chosen
    if (step[left] == len(labels)).any():
        labels.append("nothing more")
    series = [_dots("added", step, value, chosen & known, _style.ACCENT, hollow=False)]
    if left.any():
        series.append(_dots("tried", step, value, left, _style.NEUTRAL, hollow=True))
    return _rows.Rows(
        labels=tuple((label,) for label in labels),
        series=tuple(reversed(series)),
        axis_label=_axis(result),
        aside=(*_asides(result), *[""] * (len(labels) - len(result.chosen) - 1)),
        aside_title="p (adjusted)" if result.criterion == "glrt" and result.adjust == "holm" else _aside_title(result),
        legend=left.any(),
    )


def _dots(name: str, step: Any, value: pd.Series[float], mask: Any, colour: str, *, hollow: bool) -> _rows.Series:
    missing = np.full(int(mask.sum()), np.nan)
    return _rows.Series(
        name=name,
        row=step[mask].astype(np.intp),
        centre=value.to_numpy(dtype=float)[mask],
        low=missing,
        high=missing,
        colour=colour,
        hollow=hollow,
    )


def _axis(result: SelectionResult) -> str:
    if result.criterion == "glrt":
        return "−2 log-likelihood after the step (lower fits better)"
    counts = f", n = {result.bic_n}" if result.criterion == "bic" else ""
    return f"{_NAMES[result.criterion]} after the step (lower is better{counts})"


def _aside_title(result: SelectionResult) -> str:
    return "p" if result.criterion == "glrt" else "change"


def _asides(result: SelectionResult) -> list[str]:
    steps = result.steps
    if result.criterion == "glrt":
        return ["", *map(_style.p_value, steps["p_adjusted"].iloc[1:])]
    changes = np.diff(steps[result.criterion].to_numpy(dtype=float))
    return ["", *(_style.number(change) for change in changes)]


# ---------------------------------------------------------------------- the models


def _draw_models(result: SearchResult, table: pd.DataFrame, ax: Axes | None) -> Axes:
    terms = [text for text in result.terms if any(text in own for own in table["terms"])] or ["(no term)"]
    names = [_style.one_line(text) for text in terms]
    if ax is None:
        ax = _canvas.new_axes(*_size(len(table), names))
    width, height = _canvas.size_in_points(ax)
    slot = ax.get_window_extent().frozen()
    size = _font(ax, len(table), len(terms), width, height)
    _canvas.bare(ax)
    ax.set_axis_on()
    _canvas.frame(ax, size)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlim(-0.6, len(terms) - 0.4)
    ax.set_ylim(len(table) - 0.5, -0.5)
    _draw_matrix(ax, table, terms, size)
    _label_models(ax, table, size)
    _label_terms(ax, names, height, size)
    _draw_differences(ax, result, table, width, size)
    _fitting.fit_inside(ax, slot)
    return ax


def _size(n_models: int, names: list[str]) -> tuple[float, float]:
    font = _style.base_font()
    longest = 0.6 * max(map(len, names)) * font
    height = min((n_models * _ROW + 4) * font + longest, _HIGHEST * 72)
    width = (len(names) * _COLUMN + _BAR + _GAP + 9) * font
    return max(width / 72, 4.5), max(height / 72, 2.5)


def _font(ax: Axes, n_models: int, n_terms: int, width: float, height: float) -> float:
    font = _style.base_font()
    while True:
        high = (n_models * _TIGHT_ROW / (1 - _HEAD_SHARE) + 3) * font
        wide = (n_terms * 1.15 + _BAR + _GAP + 8) * font
        if high <= height and wide <= width:
            return font
        if font <= _style.SMALLEST_FONT:
            raise _canvas.too_small(ax, f"a matrix of {n_models} models and {n_terms} terms", high)
        font = max(font - 0.25, _style.SMALLEST_FONT)


def _draw_matrix(ax: Axes, table: pd.DataFrame, terms: list[str], size: float) -> None:
    """A filled dot for a term of the model, a faint one where it lacks the term."""
    for row, (own, best) in enumerate(zip(table["terms"], table["best"], strict=True)):
        ax.axhline(row, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
        has = np.array([text in own for text in terms])
        for mask, colour, scale, label in (
            (has, _style.ACCENT if best else _style.INK, 0.7, "_has"),
            (~has, _style.FAINT, 0.35, "_lacks"),
        ):
            places = np.flatnonzero(mask)
            style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": scale * size, "color": colour}
            ax.plot(places, np.full(len(places), row), label=label, clip_on=False, zorder=3, **style)


def _label_models(ax: Axes, table: pd.DataFrame, size: float) -> None:
    labels = [
        f"(singular) {rank}" if s else f"{rank}" for s, rank in zip(table["singular"], table["rank"], strict=True)
    ]
    ax.set_yticks(range(len(labels)), labels)
    for tick, best in zip(ax.get_yticklabels(), table["best"], strict=True):
        style = {"color": _style.ACCENT if best else _style.INK, "fontweight": "bold" if best else "normal"}
        _style.literal(tick).set(fontsize=size, va="center", **style)


def _label_terms(ax: Axes, names: list[str], height: float, size: float) -> None:
    font = _style.font_for(names)
    labels = _style.shorten(names, _HEAD_SHARE * height - size, _style.Ruler(ax, size, **font))
    ax.set_xticks(range(len(labels)), labels)
    ax.tick_params(axis="x", length=0)
    for tick in ax.get_xticklabels():
        _style.literal(tick).set(fontsize=size, color=_style.INK, rotation=90, ha="center", va="top", **font)


def _draw_differences(ax: Axes, result: SearchResult, table: pd.DataFrame, width: float, size: float) -> None:
    """Bars of the differences from the best criterion, with their numbers, at the right of the matrix."""
    columns = max(width - (_BAR + _GAP + 7) * size, 3 * size)
    side = ax.inset_axes((1 + _GAP * size / columns, 0.0, (_BAR - 4.5) * size / columns, 1.0))
    _canvas.bare(side)
    delta = table["delta"].to_numpy(dtype=float)
    most = float(delta.max()) or 1.0
    side.set_xlim(0.0, most)
    side.set_ylim(*ax.get_ylim())
    colours = [_style.ACCENT if best else _style.NEUTRAL for best in table["best"]]
    side.barh(np.arange(len(delta)), delta, height=0.55, color=colours, label="_delta")
    for row, value in enumerate(delta):
        side.annotate(
            _style.number(value) if value >= 0.005 else "0",
            (value, row),
            xytext=(0.3 * size, 0),
            textcoords="offset points",
            ha="left",
            va="center",
            annotation_clip=False,
            **_style.text_style(0.9 * size),
        )
    side.annotate(
        f"Δ {_NAMES[result.criterion]}",
        (0.0, 1.0),
        xycoords="axes fraction",
        xytext=(0, 0.3 * size),
        textcoords="offset points",
        ha="left",
        va="bottom",
        annotation_clip=False,
        **_style.text_style(0.9 * size, color=_style.MUTED),
    )
