"""Random effects of one group with their intervals, sorted: the caterpillar plot."""

from __future__ import annotations

from matplotlib.axes import Axes

from lmemtest.core.result import Answer
from lmemtest.core.rounding import tie_order
from lmemtest.core.validate import check_choice, check_positive_int
from lmemtest.plots import _canvas, _rows, _style


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
    shown = _rows.Shown.ends(len(rows), max_rows)  # who stands out is at the ends
    labels = shown.labels(rows["level"])
    rows = rows.take(shown.kept.tolist())
    clear = ((rows["ci_low"] > 0) | (rows["ci_high"] < 0)).to_numpy()
    grey = {"colour": _style.MUTED, "hollow": True}
    series = _rows.Series.kinds(rows, shown.place, (("differs from zero", clear, {}), ("may be zero", ~clear, grey)))
    what = "Deviation" if effect == "Intercept" else f"Effect of {_style.one_line(effect)}"
    group, response = _style.one_line(effects.group), _style.one_line(effects.score)
    content = _rows.Rows(
        labels=labels,
        series=series,
        axis_label=f"{what} by {group}, on the scale of {response}\n"
        + intervals(1.0 - effects.alpha, simultaneous=effects.simultaneous)
        + (", given the fixed effects" if effects.target == "conditional" else "")
        + shown.sentence("levels, those in the middle,"),
        headers=shown.headers,
        reference=0.0,
        legend=len(series) > 1,
    )
    return _rows.draw_rows(content, ax)


def intervals(level: float, *, simultaneous: bool) -> str:
    """Intervals in words: simultaneous ones, or each on its own."""
    percent = _style.nobreak(f"{100 * level:g} %")
    return f"Simultaneous {percent} intervals" if simultaneous else f"{percent} intervals, not simultaneous"
