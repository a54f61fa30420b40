"""Random effects of one group with their intervals, sorted: the caterpillar plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest._rounding import tie_order
from lmemtest._validate import check_choice, check_positive_int
from lmemtest.errors import ArgumentError
from lmemtest.inference.intervals.random_effects import RandomEffects
from lmemtest.plots import _canvas, _rows, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


def caterpillar_plot(
    effects: RandomEffects, *, effect: str | None = None, most: int = _rows.MOST_ROWS, ax: Axes | None = None
) -> Axes:
    """Draw the random effects of a group as sorted dots with their intervals.

    Parameters
    ----------
    effects : RandomEffects
        From `LmmFit.random_effects`.
    effect : str, optional
        Which effect of the group; the first one by default.
    most : int, >= 2
        Rows; of more levels, those at both ends are drawn, and a row and the axis label say how many were
        left out.
    ax : Axes, optional
        Where to draw; a new figure with None.

    Returns
    -------
    Axes
        Levels from the smallest effect at the top to the largest; filled dots exclude zero.

    Raises
    ------
    ArgumentError
        If `effects` is not a result of `random_effects`, the effect is unknown, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 16, 18, 17, 17], "tool": ["A", "B"] * 8,
    ...          "task": list("wwwwxxxxyyyyzzzz")}
    >>> ax = lt.plots.caterpillar_plot(lt.fit_lmm("loss ~ tool + (1 | task)", table).random_effects("task"))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['w', 'x', 'y', 'z']
    """
    _canvas.check_axes(ax)
    if not isinstance(effects, RandomEffects):
        raise ArgumentError(f"effects must be the result of random_effects(), got {type(effects).__name__}.")
    most = check_positive_int(most, "most", minimum=2)
    effect = effects.effects[0] if effect is None else effect
    check_choice(effect, "effect", effects.effects)
    rows = effects.table[effects.table["effect"] == effect]
    rows = rows.iloc[tie_order(rows["estimate"])]
    return _rows.draw_rows(_content(effects, rows, effect, most), ax)


def _content(effects: RandomEffects, rows: DataFrame, effect: str, most: int) -> _rows.Rows:
    shown = _rows.Shown.ends(len(rows), most)  # who stands out is at the ends
    labels = shown.labels([_style.one_line(str(level)) for level in rows["level"]])
    rows = rows.take(shown.kept.tolist())
    clear = ((rows["ci_low"] > 0) | (rows["ci_high"] < 0)).to_numpy()
    values = [rows[name].to_numpy(dtype=float) for name in ("estimate", "ci_low", "ci_high")]
    series = tuple(
        _rows.Series(
            name=name,
            row=shown.place[mask],
            centre=values[0][mask],
            low=values[1][mask],
            high=values[2][mask],
            colour=_style.ACCENT if solid else _style.MUTED,
            hollow=not solid,
        )
        for name, mask, solid in (("differs from zero", clear, True), ("may be zero", ~clear, False))
        if mask.any()
    )
    return _rows.Rows(
        labels=labels,
        series=series,
        axis_label=_axis_label(effects, effect) + shown.sentence("levels, those in the middle,"),
        headers=shown.headers,
        reference=0.0,
        legend=len(series) > 1,
    )


def _axis_label(effects: RandomEffects, effect: str) -> str:
    level = _style.nobreak(f"{100 * effects.level:g} %")
    held = "intervals that hold together" if effects.simultaneous else "intervals, one by one"
    what = "Deviation" if effect == "Intercept" else f"Effect of {_style.one_line(effect)}"
    group, response = _style.one_line(effects.group), _style.one_line(effects.score)
    if effects.target == "conditional":
        held += ", given the fixed effects"
    return f"{what} by {group}, on the scale of {response}\n{level} {held}"
