"""Figures of a model: its random effects, sorted; the profiles of its likelihood; and how it was chosen."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.modelling.select_model import ChosenModel
from lmemtest.core.result import Answer
from lmemtest.core.rounding import tie_order
from lmemtest.core.validate import check_choice, check_positive_int
from lmemtest.core.words import counted, format_number, format_p
from lmemtest.plots import _canvas, _heat, _rows, _style
from lmemtest.plots._layout import LINE, SMALL, TICK_PAD, Axis
from lmemtest.plots._lines import Curve, Level, Lines, Panel, draw_lines


@_canvas.draws("random_effects", source="random_effects()")
def random_effects_plot(
    effects: Answer,
    /,
    *,
    effect: str | None = None,
    max_rows: int = _rows.MOST_ROWS,
    ax: Axes | None = None,
) -> Axes:
    """Draw the random effects of a group as sorted dots with their intervals.

    Parameters
    ----------
    effects : Answer
        From `LmmFit.random_effects`.
    effect : str, optional
        Which effect of the group; the first one by default.
    max_rows : int, >= 2
        Of more levels, those at both ends are drawn, and a row and the axis label say how many were left out.

    Returns
    -------
    Axes
        Levels from the smallest effect at the top to the largest; filled dots exclude zero.

    Raises
    ------
    ArgumentError
        If `effects` are something else, the effect is unknown, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 16, 18, 17, 17], "tool": ["A", "B"] * 8,
    ...          "task": list("wwwwxxxxyyyyzzzz")}
    >>> ax = lt.fit_lmm("loss ~ tool + (1 | task)", table).random_effects("task").plot()
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['w', 'x', 'y', 'z']
    """
    max_rows = check_positive_int(max_rows, "max_rows", minimum=2)
    effect = effects.effects[0] if effect is None else effect
    check_choice(effect, "effect", effects.effects)
    rows = effects.table[effects.table["effect"] == effect]
    rows = rows.iloc[tie_order(rows["estimate"])]
    drawn = _rows.Shown.ends(len(rows), max_rows)  # who stands out is at the ends
    labels = drawn.labels(rows["level"])
    rows = rows.take(drawn.kept.tolist())
    clear = ((rows["ci_low"] > 0) | (rows["ci_high"] < 0)).to_numpy()
    grey = {"colour": _style.MUTED, "hollow": True}
    series = _rows.Series.kinds(rows, drawn.place, (("differs from zero", clear, {}), ("may be zero", ~clear, grey)))
    what = "Deviation" if effect == "Intercept" else f"Effect of {_style.one_line(effect)}"
    group, response = _style.one_line(effects.group), _style.one_line(effects.score)
    content = _rows.Rows(
        labels=labels,
        series=series,
        axis_label=f"{what} by {group}, on the scale of {response}\n"
        + _rows.intervals(1.0 - effects.alpha, simultaneous=effects.simultaneous)
        + (", given the fixed effects" if effects.target == "conditional" else "")
        + "\nWithout a line: the interval cannot be estimated" * bool(rows["ci_low"].isna().any())
        + drawn.sentence("levels, those in the middle,"),
        headers=drawn.headers,
        reference=0.0,
        legend=len(series) > 1,
    )
    return _rows.draw_rows(content, ax)


SCALES = ("zeta", "deviance")
_MARGIN = 0.05  # of the range, on both ends of the x axis
_HEIGHT = 95.0  # points of a panel in a new figure
_TOP = 1.3  # of the vertical axis, in cuts
_Y_LABELS = {
    "zeta": ("ζ, signed root of the deviance", "root of deviance", "ζ"),
    "deviance": ("deviance above its minimum", "deviance"),
}


@_canvas.draws("profile", source="profile()")
def profile_plot(result: Answer, /, *, scale: str = "zeta", ax: Axes | None = None) -> Axes:
    """Draw the profile of every parameter.

    Parameters
    ----------
    result : Answer
        From `LmmFit.profile`.
    scale : {"zeta", "deviance"}
        The signed root of the deviance, which is a straight line where a symmetric interval is right; or the deviance
        above its minimum.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, one per row of ``result.table`` and in its order. Each shows the
        profile, the cut (dashed), the interval with its estimate, and in grey the straight line (or parabola) on which
        a symmetric interval rests. The profile goes through the exact points of ``result.curves``, with their slopes.
        A parameter without a profile has an empty panel that says so. Long names take two lines; where these do not
        hold them either, their middle is left out.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 7], "tool": ["A", "B"] * 6, "task": list("aabbccddeeff")}
    >>> ax = lt.fit_lmm("loss ~ tool + (1 | task)", table).profile("sd").plot()
    >>> [panel.get_title(loc="left") for panel in ax.child_axes]
    ['sd Intercept | task']
    """
    check_choice(scale, "scale", SCALES)
    level = _style.nobreak(f"{100 * (1.0 - result.alpha):g} % cut")
    what = "restricted likelihood" if result.likelihood.startswith("restricted") else "likelihood"
    y = _y_axis(result, scale)
    rows = zip(result.labels, (row for _, row in result.table.iterrows()), strict=True)
    lines = Lines(
        what=counted(len(result.table), "panel"),
        panels=tuple(_panel(result, name, row, y, scale) for name, row in rows),
        shared=True,
        guides=False,
        smallest=(8.0, 3.8),
        x_label="",
        y_label=_Y_LABELS[scale],
        foot=(
            f"Profiles of the {what}. Dashed: {level}. Bar: interval and estimate. "
            "Grey: the profile that a symmetric interval assumes."
        ),
    )
    return draw_lines(lines, ax, height=_HEIGHT)


def _y_axis(result: Answer, scale: str) -> Axis:
    """Ticks at whole numbers where they say something, else at the cut itself."""
    top = _TOP * result.cut
    if scale == "deviance":
        ticks = np.array([0.0, round(result.cut**2, 2)])
        return Axis(limits=(-0.06 * top**2, top**2), ticks=ticks, labels=tuple(_style.tick_labels(ticks.tolist())))
    step = max(1.0, float(np.floor(top / 2)))
    ticks = np.arange(-np.floor(top / step), np.floor(top / step) + 1) * step
    return Axis(limits=(-top, top), ticks=ticks, labels=tuple(_style.tick_labels(ticks.tolist())))


def _panel(result: Answer, name: str, row: pd.Series[Any], y: Axis, scale: str) -> Panel:
    keys = ["kind", "group", "name1", "name2"]
    curve = result.curves[np.logical_and.reduce([result.curves[key].to_numpy() == row[key] for key in keys])]
    cuts = (-result.cut, result.cut) if scale == "zeta" else (result.cut**2,)
    levels = tuple(Level(at=cut, colour=_style.WARM, dash=(0, (4, 3)), label="_cut") for cut in cuts)
    title = (name,)
    if curve.empty:
        return Panel(x=Axis(limits=(0.0, 1.0)), y=y, levels=levels, title=title, missing="no profile")
    points, zeta = curve["value"].to_numpy(), curve["zeta"].to_numpy()
    ends = np.array([row["ci_low"], row["ci_high"]], dtype=float)
    inside = points[np.abs(zeta) <= _TOP * result.cut]
    x = Axis.around(np.concatenate([inside, ends]), pad=_MARGIN)
    power = 1 if scale == "zeta" else 2
    fine, smooth = _smooth(points, zeta, curve["slope"].to_numpy())
    curves = [Curve(x=fine, y=smooth**power, label="_profile", clip=True)]
    centre = curve[curve["zeta"] == 0].head(1)
    slope = float(centre["slope"].iloc[0]) if len(centre) else float("nan")
    if np.isfinite(slope) and slope > 0:  # the profile that a standard error implies
        at = np.linspace(*x.limits, 2 if scale == "zeta" else 41)
        straight = (slope * (at - float(centre["value"].iloc[0]))) ** power
        curves.append(Curve(x=at, y=straight, colour=_style.FAINT, label="_symmetric", clip=True, front=1))
    ink: dict[str, Any] = {"colour": _style.INK, "front": 4}
    curves.append(Curve(x=ends, y=np.zeros(2), width=0.25, label="_interval", **ink))
    estimate = np.array([float(row["estimate"])])
    curves.append(Curve(x=estimate, y=np.zeros(1), marker="o", size=0.5, width=0.0, label="_estimate", **ink))
    return Panel(x=x, y=y, curves=tuple(curves), levels=levels, title=title)


def _smooth(x: np.ndarray, zeta: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The curve through exact points with exact slopes, fine enough for the eye."""
    from scipy.interpolate import CubicHermiteSpline

    distinct = np.concatenate([[True], np.diff(x) > 1e-9 * (x[-1] - x[0])])
    x, zeta, slope = x[distinct], zeta[distinct], slope[distinct].copy()
    if len(x) < 2:
        return x, zeta
    steepness = np.diff(zeta) / np.diff(x)
    # at a bound: the slope of the last piece, which keeps the curve from overshooting; steeper ones likewise
    slope = np.where(np.isfinite(slope), slope, np.append(steepness, steepness[-1]))
    limit = 3.0 * np.minimum(np.append(steepness, np.inf), np.append(np.inf, steepness))
    slope = np.clip(slope, 0.0, np.maximum(limit, 0.0))
    fine = np.unique(np.concatenate([np.linspace(a, b, 9) for a, b in pairwise(x)]))
    return fine, CubicHermiteSpline(x, zeta, slope)(fine)


# In font sizes.
_TERM, _TIGHT = 1.7, 1.15  # a row of a term, at least
_BAR, _GAP = 3.0, 0.4  # the bars of the differences, and what parts them from the matrix
_MOST_MODELS, _MODELS_PER_INCH = 12, 2  # of a figure
_LABEL_SHARE = 0.45  # the most of the width that the terms may take
_NAMES = {"aic": "AIC", "bic": "BIC", "glrt": "AIC"}


@_canvas.draws(ChosenModel, source="select_model()")
def selection_plot(result: ChosenModel, /, *, max_models: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw how a model was chosen.

    Parameters
    ----------
    result : ChosenModel
        From `lmemtest.select_model`.
    max_models : int, optional
        The most models to draw, of methods that rank them; 12 by default, or 2 per inch of a narrow figure.

    Returns
    -------
    Axes
        Of "forward": a row per step with the criterion of the term that was added and of those that were not; the
        last row has what was left. Of "best" and "backward": a column per model, a dot for each of its terms beyond
        those that all models have, which are in a line below, and above how much worse than the best its criterion is.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> [label.get_text() for label in lt.select_model(runs, criterion="bic").plot().get_yticklabels()]
    ['start', '+ (1 | benchmark:algorithm)', '+ (1 | benchmark:seed)', 'nothing more']
    """
    if max_models is None:
        inches = _canvas.figure_width() if ax is None else _canvas.size_in_points(ax)[0] / 72
        max_models = min(_MOST_MODELS, max(int(_MODELS_PER_INCH * inches), 1))
    max_models = check_positive_int(max_models, "max_models")
    if result.method == "forward":
        return _rows.draw_rows(_path(result), ax)
    return _draw_models(result, result.models.head(max_models), ax)


def _path(result: ChosenModel) -> _rows.Rows:
    likelihood = result.criterion == "glrt"
    path = result.path.assign(value=-2.0 * result.path["llf"] if likelihood else result.path[result.criterion])
    step, chosen = path["step"].to_numpy(dtype=np.intp), path["chosen"].to_numpy(dtype=bool)
    finite = np.isfinite(path["value"].to_numpy(dtype=float))
    labels = ["start", *(f"+ {term}" for term in result.chosen)]
    left = finite & ~chosen
    if (step[left] == len(labels)).any():
        labels.append("nothing more")
    kinds: tuple[_rows.Kind, ...] = (
        ("tried", left, {"colour": _style.NEUTRAL, "hollow": True}),
        ("added", chosen & finite, {}),
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
    terms = [text for text in result.terms if any(text in terms_of_model for terms_of_model in table["terms"])] or [
        "(no term)"
    ]
    delta = table["delta"].to_numpy(dtype=float)
    numbers = [_style.fixed(value, int(0.05 <= value < 9.95)) for value in delta]
    if ax is None:
        inches, font = _canvas.figure_width(), _style.base_font()
        longest = _style.Ruler(_canvas.scratch_axes(inches), font).widest(terms)
        pitch = _TERM + LINE * (longest > 72.0 * _LABEL_SHARE * inches)
        height = (len(terms) * pitch + _BAR + 9) * font / 72
        ax = _canvas.new_axes(inches, min(height, _canvas.PAGE_HEIGHT))
    names = [f"{rank}{'*' * bool(s)}" for s, rank in zip(table["singular"], table["rank"], strict=True)]
    what = f"a matrix of {counted(len(table), 'model')} and {counted(len(terms), 'term')}"
    title = _style.nobreak(f"Δ {_NAMES[result.criterion]}")
    best = ", the best in blue and bold" * bool(table["best"].any())
    note = [f"Columns: models{best}. Dots: their terms beyond {_style.one_line(result.start.formula)}."]
    note += ["* singular: a variance is zero or a correlation one."] * bool(table["singular"].any())
    wide = max(_TIGHT, SMALL * _style.Ruler(ax, 10.0).widest([*numbers, *names]) / 10.0 + 0.3)
    room: dict[str, Any] = {"beside": (0.0, 0.5), "above": _BAR + _GAP + 2.4, "label_share": _LABEL_SHARE}
    size, cells, *_ = _heat.grid(ax, terms, names, what, note=note, tight=(wide, _TIGHT), **room)
    for row in range(len(terms)):
        ax.axhline(row, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
    for column, (terms_of_model, best) in enumerate(zip(table["terms"], table["best"], strict=True)):
        has = np.array([text in terms_of_model for text in terms])
        filled = _style.ACCENT if best else _style.INK  # a faint dot where the model lacks the term
        for mask, colour, scale, label in ((has, filled, 0.7, "_has"), (~has, _style.FAINT, 0.35, "_lacks")):
            places = np.flatnonzero(mask)
            style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": scale * size, "color": colour}
            ax.plot(np.full(len(places), column), places, label=label, clip_on=False, zorder=3, **style)
    for tick, best in zip(ax.get_xticklabels(), table["best"], strict=True):
        tick.set(color=_style.ACCENT if best else _style.INK, fontweight="bold" if best else "normal")
    box = ax.inset_axes((0.0, 1.0 + _GAP * size / cells.height, 1.0, _BAR * size / cells.height))
    _canvas.bare(box)
    box.set_ylim(0.0, float(delta.max()) or 1.0)
    box.set_xlim(*ax.get_xlim())
    colours = [_style.ACCENT if best else _style.NEUTRAL for best in table["best"]]
    box.bar(np.arange(len(delta)), delta, width=0.55, color=colours, label="_delta")
    place: dict[str, Any] = {"textcoords": "offset points", "va": "bottom", "annotation_clip": False}
    for column, (value, text) in enumerate(zip(delta, numbers, strict=True)):
        words = _style.text_style(SMALL * size)
        box.annotate(text, (column, value), xytext=(0.0, 0.2 * size), ha="center", **place, **words)
    words = _style.text_style(SMALL * size, color=_style.MUTED)
    at = (-TICK_PAD, 0.2 * size)
    box.annotate(title, (0.0, 0.0), xycoords="axes fraction", xytext=at, ha="right", **place, **words)
    return ax
