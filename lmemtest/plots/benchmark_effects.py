"""How the algorithms differ on each benchmark: a map of all, dots side by side, or one comparison, sorted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.benchmark.benchmark_effects import BenchmarkEffects
from lmemtest.bench.benchmark.effect_plan import MEAN
from lmemtest.core.rounding import tie_order
from lmemtest.core.validate import check_choice, check_direction, check_positive_int
from lmemtest.core.words import format_level, plural
from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.plots import _canvas, _heat, _rows, _style
from lmemtest.plots._layout import MINUS

COLUMNS = ("benchmark", "algorithm", "effect", "ci_low", "ci_high")
KINDS = ("auto", "heatmap", "intervals", "caterpillar")
MOST_ALGORITHMS, MOST_EFFECTS = 5, 80  # beyond these, dots and whiskers are a thicket and "auto" draws the map


@_canvas.draws(BenchmarkEffects, pd.DataFrame, source=f"benchmark_effects(), or a table of {', '.join(COLUMNS)}")
def benchmark_effects_plot(
    effects: BenchmarkEffects | pd.DataFrame,
    /,
    *,
    kind: str = "auto",
    comparison: str | None = None,
    direction: str | None = None,
    max_rows: int = _rows.MOST_ROWS,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the algorithms differ on each benchmark, or in each family.

    Parameters
    ----------
    effects : BenchmarkEffects or pandas.DataFrame
        From `lmemtest.benchmark_effects`; or one row per benchmark and algorithm with columns benchmark, algorithm,
        effect (its deviation from the mean of the benchmark), ci_low, ci_high. Both factors keep the order in which
        they appear. Missing rows and NaN are shown as missing.
    kind : {"auto", "heatmap", "intervals", "caterpillar"}
        All comparisons as colours, bold where the interval excludes zero; all as dots with intervals, one row per
        benchmark; or one comparison, sorted, with the observed differences and the overall one. "auto" draws the map,
        but intervals of a table of up to five algorithms and 80 effects.
    comparison : str, optional
        For the caterpillar: an algorithm (its deviation from the mean), or "A - B" for a pair; the first by default.
    direction : {"minimize", "maximize"}, optional
        Of a table: which sign is better; the axis says so, and the map is blue there. A result knows its own.
    max_rows : int, >= 2
        Of more benchmarks, those with the largest effects are drawn, in their order, and of the caterpillar both ends;
        a line says how many were left out.

    Returns
    -------
    Axes
        Row i, from the top, is at y = i, and in the map comparison j at x = j. Of a result the benchmarks with the
        largest effects come first, and of deviations from the mean those of the best algorithm; a caterpillar is sorted
        by effect.

    Raises
    ------
    UnknownColumnError
        If a column of the table is missing.
    ArgumentError
        If `effects` are something else, an option is unknown, the table is empty or has two rows for a benchmark and
        algorithm, or `ax` is too small.

    Notes
    -----
    A table is shown as it is given: whether its effects are shrunken, and at which level the intervals are, belongs
    into the caption.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good", algorithm=["RS", "HB"])
    >>> ax = lt.benchmark_effects(runs, contrast="pairs").plot(kind="caterpillar")
    >>> ax.get_yticklabels()[0].get_text()
    'forest-cancer'
    """
    check_choice(kind, "kind", KINDS)
    if direction is not None:
        direction = check_direction(direction)
    max_rows = check_positive_int(max_rows, "max_rows", minimum=2)
    if isinstance(effects, pd.DataFrame):
        content = _of_table(effects, direction)
        few = len(content.comparisons) <= MOST_ALGORITHMS and len(content.table) <= MOST_EFFECTS
        kind = ("intervals" if few else "heatmap") if kind == "auto" else kind
    else:
        content = _of_result(effects)
    comparison = content.comparisons[0] if comparison is None else comparison
    check_choice(comparison, "comparison", tuple(content.comparisons))
    if kind == "caterpillar":
        return _draw_sorted(content, comparison, max_rows, ax)
    benchmarks = list(dict.fromkeys(content.table["benchmark"]))
    size = content.table.groupby("benchmark", sort=False, observed=True)["estimate"].agg(lambda x: x.abs().max())
    drawn = _rows.Shown.largest(size.loc[benchmarks].to_numpy(dtype=float), max_rows)
    kept = [benchmarks[i] for i in drawn.kept]
    left_out = drawn.sentence(f"{plural(content.noun)}, those with smaller effects,")
    if kind == "intervals":
        return _rows.draw_rows(_side_by_side(content, kept, left_out), ax)
    return _heat.draw_heat(_map(content, kept, left_out), ax)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Effects:
    """A row of `table` per benchmark and comparison, and how to write what they are."""

    table: pd.DataFrame  # benchmark, comparison, estimate, ci_low, ci_high, observed, overall, extrapolated
    comparisons: list[str]
    what: str
    held: str = ""  # what the intervals hold for
    dashed: str = ""  # what the dashed line is
    against_mean: bool = False
    holds: str = ""  # what emphasis says of a cell of the map, and what is said where no cell has it
    nothing: str = ""
    shrunken: str = ""
    direction: str | None = None
    score: str = ""
    roster: tuple[str, ...] = ()
    noun: str = "benchmark"
    pairs: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # by comparison, of those that are differences

    def written(self, comparison: str) -> str:
        """What a comparison is called in the figure."""
        return MINUS.join(map(_style.one_line, self.pairs.get(comparison, (comparison,))))

    @property
    def better(self) -> str:
        of = [f"in {_style.one_line(self.score)}"] if self.score else []
        reading = {"minimize": ["negative is better"], "maximize": ["positive is better"]}.get(self.direction or "", [])
        return f" ({', '.join([*of, *reading])})" if of or reading else ""


def _of_result(effects: BenchmarkEffects) -> _Effects:
    names = {pair: pair[0] if pair[1] == MEAN else f"{pair[0]} - {pair[1]}" for pair in effects.comparisons}
    table = effects.table.rename(columns={effects.unit: "benchmark"})
    largest = table.groupby("benchmark", sort=False, observed=True)["estimate"].agg(lambda x: x.abs().max())
    place = {largest.index[i]: rank for rank, i in enumerate(tie_order(largest, descending=True))}
    table = table.iloc[np.argsort(table["benchmark"].map(place).to_numpy(), kind="stable")]
    pairs = zip(table["algorithm"], table["versus"], strict=True)
    every = "are simultaneous over the rows" if effects.simultaneous else "are individual"
    level = _style.nobreak(f"{100 * (1.0 - effects.alpha):g} %")
    return _Effects(
        table=table.assign(comparison=[names[pair] for pair in pairs]),
        comparisons=_best_first(effects, names) if effects.contrast == "mean" else list(names.values()),
        what="Deviation from the mean" if effects.contrast == "mean" else "Difference",
        held=_rows.intervals(1.0 - effects.alpha, simultaneous=effects.simultaneous),
        dashed="; dashed: overall",
        against_mean=effects.contrast == "mean",
        holds=f"zero is outside the {level} interval; the intervals of a column {every}.",
        nothing=f"Zero is inside every {level} interval shown; the intervals of a column {every}.",
        shrunken="shrunken, ",
        direction=effects.direction,
        score=effects.fit.data.study.measured,
        roster=effects.fit.data.roster if effects.contrast == "mean" else (),
        noun=effects.unit,
        pairs={name: pair for pair, name in names.items() if pair[1] != MEAN},
    )


def _best_first(effects: BenchmarkEffects, names: Mapping[tuple[str, str], str]) -> list[str]:
    """Deviations from the mean, those of the best algorithm over all benchmarks first."""
    overall = effects.table.groupby("algorithm", sort=False, observed=True)["overall"].mean()
    order = tie_order([overall[pair[0]] for pair in names], descending=effects.direction == "maximize")
    return [list(names.values())[i] for i in order]


def _of_table(table: pd.DataFrame, direction: str | None) -> _Effects:
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        columns = ", ".join(map(str, table.columns))
        raise UnknownColumnError(
            f"table must have the columns {', '.join(COLUMNS)}; {missing[0]!r} is not in {columns}."
        )
    if table.empty:
        raise ArgumentError("table must have at least one row, got none.")
    repeated = table.duplicated(["benchmark", "algorithm"])
    if repeated.any():
        first = table[repeated].iloc[0]
        raise ArgumentError(
            f"table must have one row per benchmark and algorithm, got several for "
            f"{first['benchmark']!r} and {first['algorithm']!r}. Aggregate them first."
        )
    names = table["algorithm"].map(format_level)
    rest = {"observed": np.nan, "overall": np.nan, "extrapolated": False}
    table = table.assign(comparison=names, **rest).rename(columns={"effect": "estimate"})
    with_intervals = bool(table["ci_low"].notna().any())
    return _Effects(
        table=table,
        comparisons=list(dict.fromkeys(names)),
        what="Deviation from the benchmark's mean",
        against_mean=True,
        holds="the interval excludes zero." if with_intervals else "",
        nothing="Every interval shown includes zero." if with_intervals else "",
        direction=direction,
    )


def _clear(table: pd.DataFrame) -> np.ndarray:
    return ((table["ci_low"] > 0) | (table["ci_high"] < 0)).to_numpy(dtype=bool)


def _map(content: _Effects, benchmarks: list[object], left_out: str) -> _heat.Heat:
    table = content.table[content.table["benchmark"].isin(benchmarks)]
    at = (
        pd.Index(benchmarks).get_indexer(table["benchmark"]),
        pd.Index(content.comparisons).get_indexer(table["comparison"]),
    )
    shape = (len(benchmarks), len(content.comparisons))
    values, clear, guessed = np.full(shape, np.nan), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    values[at], clear[at] = table["estimate"].to_numpy(dtype=float), _clear(table)
    guessed[at] = table["extrapolated"].to_numpy(dtype=bool)
    bold = clear & ~guessed
    note = "" if clear.any() else content.nothing
    if guessed.any():
        note += " Grey: extrapolated, because an algorithm was not run there."
    what = f"{content.what}, shrunken" if content.shrunken else content.what
    return _heat.Heat(
        rows=[format_level(name) for name in benchmarks],
        columns=[content.written(name) for name in content.comparisons],
        of="columns",
        values=values,
        coloured=~guessed,
        bold=bold,
        emphasis=content.holds,
        palette="high is blue" if content.direction == "maximize" else "low is blue",
        scale_label=what + content.better,
        note=(note.strip(), left_out.strip()),
    )


def _side_by_side(content: _Effects, benchmarks: list[object], left_out: str) -> _rows.Rows:
    table = content.table[content.table["benchmark"].isin(benchmarks)]
    row = pd.Index(benchmarks).get_indexer(table["benchmark"])
    series = []
    looks = _style.places(content.comparisons, content.roster)
    for i, (name, place) in enumerate(looks.items()):
        of_comparison = (table["comparison"] == name).to_numpy()
        look: dict[str, Any] = {"colour": _style.colour(place), "marker": _style.marker(place), "offset": i}
        series.append(_rows.Series.of(table[of_comparison], row[of_comparison], name=content.written(name), **look))
    held = f"\n{content.held}" if content.held else ""
    return _rows.Rows(
        labels=[format_level(name) for name in benchmarks],
        series=tuple(series),
        lanes=len(series),
        legend=True,
        reference=0.0,
        axis_label=content.what + content.better + held + left_out,
    )


def _draw_sorted(content: _Effects, comparison: str, max_rows: int, ax: Axes | None) -> Axes:
    part = content.table[content.table["comparison"] == comparison]
    rows = part.iloc[tie_order(part["estimate"])]
    drawn = _rows.Shown.ends(len(rows), max_rows)
    labels = drawn.labels(rows["benchmark"].map(format_level))
    rows = rows.take(drawn.kept.tolist())
    clear, guessed = _clear(rows), rows["extrapolated"].to_numpy(dtype=bool)
    seen = rows["observed"].notna().to_numpy()
    grey = {"colour": _style.MUTED, "hollow": True}
    kinds: tuple[_rows.Kind, ...] = (
        (f"{content.shrunken}differs from zero", clear & ~guessed, {}),
        (f"{content.shrunken}may be zero", ~clear & ~guessed, grey),
        ("extrapolated (not run there)", guessed, grey | {"marker": _style.marker(2)}),
    )
    observed: dict[str, Any] = {"centre": "observed", "ends": None, "colour": _style.NEUTRAL, "marker": "|"}
    series = (
        *((_rows.Series.of(rows[seen], drawn.place[seen], name="observed", **observed),) if seen.any() else ()),
        *_rows.Series.kinds(rows, drawn.place, kinds),
    )
    versus = " minus the mean" if content.against_mean else ""
    held = f"\n{content.held}{content.dashed}" if content.held else ""
    left_out = drawn.sentence(f"{plural(content.noun)}, those in the middle,")
    content_rows = _rows.Rows(
        labels=labels,
        headers=drawn.headers,
        series=series,
        axis_label=f"{content.written(comparison)}{versus}{content.better}{held}{left_out}",
        reference=0.0,
        legend=True,
    )
    ax = _rows.draw_rows(content_rows, ax)
    overall = float(part["overall"].mean())
    if np.isfinite(overall):
        ax.axvline(overall, color=_style.MUTED, linewidth=0.8, linestyle="--", zorder=1, label="_overall")
    return ax
