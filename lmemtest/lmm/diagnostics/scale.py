"""Is the residual variance the same everywhere: between the levels of a column, and along the fitted values.

The sum of squared conditional residuals of a level has an expectation that the tables drawn from the fit give
(rows minus what fixed and random effects absorb), so variances are unbiased under the model. Whether they differ is
Levene's question, whether the mean absolute residual does, which heavy tails hardly disturb. Where rows are only known
through their cells it is Bartlett's statistic over ``1 + kurtosis / 2`` (Layard 1973). The p-value of either comes
from the simulated tables.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.core.caller import advice
from lmemtest.core.verdicts import Finding, judged, judged_as
from lmemtest.core.words import format_number
from lmemtest.errors import LmemtestError
from lmemtest.lmm.diagnostics.draws import NOTE_P, WARNING_P, simulated_p
from lmemtest.lmm.diagnostics.scores import columns_of, rows_of, sum_by
from lmemtest.lmm.distributions.student import variance_interval
from lmemtest.lmm.hypotheses.variance_tests import likelihood_ratio
from lmemtest.lmm.scope import Scope

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index, Mask
    from lmemtest.core.result import Answer
    from lmemtest.lmm.diagnostics.draws import Parts
    from lmemtest.lmm.diagnostics.scores import Rows, Score
    from lmemtest.lmm.model import LmmFit


FITTED = "fitted value"
_FIFTHS = ("lowest fifth", "second", "third", "fourth", "highest fifth")
_MOST_NAMED = 2
# A level with fewer degrees of freedom says nothing about its variance.
_FEWEST_DF = 2.0
# A variance this far below the others is that of constant scores.
_CONSTANT = 1e-12
SD_NOTE, SD_WARNING = 1.5, 2.0
# Combinations of levels whose sums fit into a processor's cache.
_FEW_COMBINATIONS = 20_000


# A column: its name, its levels, code of each cell, and values (rows or cells that are looked at) per level. Both are
# None for the fitted value, whose fifths depend on the table.
Column = tuple[str, tuple[str, ...], "Index | None", "Array | None"]
# Per level the sum of squares, of absolute values, their number; and the kurtosis within levels.
Sums = tuple["Array", "Array", "Array", float]


def scaled_columns(fit: LmmFit, rows: Rows) -> list[Column]:
    """Columns whose levels may differ in scale, and the fitted value."""
    scaled: list[Column] = [
        (name, tuple(map(str, levels)), codes, np.bincount(codes[rows.cell], minlength=len(levels)).astype(float))
        for name, codes, levels in columns_of(fit)
    ]
    few = len(np.unique(fit.cell_predictions())) < 4 * len(_FIFTHS)
    return scaled if few else [*scaled, (FITTED, _FIFTHS, None, None)]


def measure_parts(parts: Parts, columns: list[Column], rows: Rows) -> list[Sums]:
    """Sums of squares of one table by the levels of each column."""
    square = parts.z * parts.z
    first, second, fourth = np.abs(parts.z), square, square * square
    if len(rows.cell) > len(parts.squares):
        n_cells = len(parts.squares)
        first, second, fourth = (sum_by(rows.cell, values, n_cells) for values in (first, second, fourth))
    codes = [_fifths(parts.fitted) if of_cells is None else of_cells for _, _, of_cells, _ in columns]
    of_table = [first, second, fourth, *([] if rows.single else [parts.squares])]
    out: list[Sums] = []
    n_levels = [len(levels) for _, levels, _, _ in columns]
    for (_, levels, _, sizes), code, (absolute, z2, z4, *of_rows) in zip(
        columns, codes, sums_by_column(codes, n_levels, of_table), strict=True
    ):
        if sizes is None:
            sizes = np.bincount(code[rows.cell], minlength=len(levels)).astype(float)
        positive = z2 > 0
        # the mean over values of (z / sd of the level)^4
        kurtosis = float((sizes[positive] ** 2 * z4[positive] / z2[positive] ** 2).sum() / sizes[positive].sum()) - 3.0
        out.append((of_rows[0] if of_rows else z2, absolute, sizes, kurtosis))
    return out


def sums_by_column(codes: list[Index], sizes: list[int], values: list[Array]) -> list[list[Array]]:
    """Sums of each array of values by the levels of each column; one pass where combinations of levels are few."""
    if not codes or math.prod(sizes) > _FEW_COMBINATIONS:
        return [[sum_by(code, v, k) for v in values] for code, k in zip(codes, sizes, strict=True)]
    joint = codes[0]
    for code, k in zip(codes[1:], sizes[1:], strict=True):
        joint = joint * k + code
    tables = [sum_by(joint, v, math.prod(sizes)).reshape(sizes) for v in values]
    axes = range(len(sizes))
    return [[table.sum(axis=tuple(other for other in axes if other != i)) for table in tables] for i in axes]


def _fifths(fitted: Array) -> Index:
    codes = np.zeros(len(fitted), dtype=np.intp)
    for end in np.sort(fitted)[(np.arange(1, 5) * len(fitted)) // 5]:
        codes += fitted >= end
    return codes


def extremes(sd: Array, most: int) -> Index:
    """Positions of the levels to show where there are more than `most`: half of them quietest, half noisiest."""
    finite = np.flatnonzero(np.isfinite(sd))
    order = finite[np.argsort(sd[finite], kind="stable")]
    if len(order) > most:
        order = np.concatenate([order[: most // 2], order[len(order) - (most - most // 2) :]])
    return np.sort(order)


def layard(squares: Array, df: Array, kurtosis: float) -> float:
    """Twice the log likelihood ratio of equal variances, over ``1 + kurtosis / 2``.

    Examples
    --------
    >>> import numpy as np
    >>> round(layard(np.array([10.0, 40.0]), np.array([10.0, 10.0]), 0.0), 4)  # 20 ln 2.5 - 10 ln 1 - 10 ln 4
    4.4629
    """
    used = df >= _FEWEST_DF
    if used.sum() < 2:
        return 0.0
    df, squares = df[used], squares[used]
    pooled = squares.sum() / df.sum()
    if not pooled > 0:
        return 0.0
    variance = np.maximum(squares / df, _CONSTANT * pooled)
    return likelihood_ratio(variance * df, df) / max(1.0 + 0.5 * kurtosis, 0.25)


def levene(sums: Sums, df: Array, expected: Array) -> float:
    """Levene's statistic: variance between levels of the mean absolute residual, over that within levels.

    ``expected`` is the sum of absolute residuals that the simulated tables have, so that levels whose residuals are
    small because the model absorbs more of them do not count as quiet.

    Examples
    --------
    >>> import numpy as np
    >>> sums = np.array([10.0, 40.0]), np.array([6.0, 12.0]), np.array([4.0, 4.0]), 0.0
    >>> round(levene(sums, np.array([4.0, 4.0]), np.array([8.0, 8.0])), 4)  # means 1.5 and 3; (10 - 9 + 40 - 36) / 6
    5.4
    """
    squares, absolute, sizes, _ = sums
    used = (df >= _FEWEST_DF) & (expected > 0) & (sizes > 0)
    if used.sum() < 2:
        return 0.0
    n, total = sizes[used], absolute[used]
    within = float((squares[used] - total**2 / n).sum()) / max(n.sum() - len(n), 1.0)
    relative = total / expected[used]
    unit = float(expected[used].sum() / n.sum())
    between = float(n @ (relative - np.average(relative, weights=n)) ** 2) * unit**2 / (len(n) - 1.0)
    return float(between / within) if within > 0 else 0.0


def scatter_of_repeats(
    fit: LmmFit, name: str, levels: tuple[str, ...], scope: Scope | None
) -> tuple[Array, Array] | None:
    """Scatter between repetitions in each cluster, over that of the model, with its degrees of freedom.

    Residuals of a model with one variance carry what it smooths in the noisiest clusters over to the quiet ones, which
    then look alike. Where the model has an effect of each cell that was repeated, the scatter about the mean of the
    cell is free of that. It is the one that ``Runs.check`` reports; None elsewhere.
    """
    parsed = fit.design.parsed
    if scope is None or name != scope.cluster or not scope.repeat:
        return None
    place = scope.place
    if fit.dispersion is not None or fit.weights is not None or place not in [set(bar.groups) for bar in parsed.bars]:
        return None
    scales = scope.scatter_of_repeats(parsed.response_transform)
    scales = scales.set_index(scales["benchmark"].map(str))
    if not set(levels) <= set(scales.index):
        return None
    scales = scales.loc[list(levels)]
    within = place | scope.along
    shared = [
        covariance[0, 0]  # of the intercept: what rows of one repetition share
        for bar, term, covariance in zip(parsed.bars, fit.design.random, fit.covariances, strict=True)
        if not set(bar.groups) <= within and term.names[0] == "Intercept"
    ]
    model = np.sqrt(fit.scale + sum(shared))
    return scales["residual_sd"].to_numpy(dtype=float) / model, scales["df"].to_numpy(dtype=float)


def judge(fit: LmmFit, column: Column, observed: Sums, draws: list[Sums], score: Score, *, single: bool) -> Answer:
    """Compare the variances of the levels of one column with those of the simulated tables.

    Returns
    -------
    Answer
        ``table``, one row per level: ``level``, ``df`` (of its variance, from the simulated tables), ``relative_sd``
        (residual standard deviation of a row of the level, over the one that the model gives it; of benchmarks on which
        the model lets advantages differ it is the scatter between seeds, as ``Runs.check`` has it), ``ci_low``,
        ``ci_high`` (95 %, for the kurtosis found). ``column``, or ``"fitted value"`` for its fifths; ``kurtosis``
        (excess, within levels); ``ratio`` of the largest standard deviation to the smallest; ``statistic``: Levene's,
        or, where rows are only known through their cells, Bartlett's over ``1 + kurtosis / 2``. ``check`` with
        ``p_value``, the share of the simulated tables in which the statistic is as large, ``severity`` and ``advice``.
    """
    name, levels, _, _ = column
    squares, _, _, kurtosis = observed
    df = np.mean([squares for squares, _, _, _ in draws], axis=0)
    expected = np.mean([absolute for _, absolute, _, _ in draws], axis=0)

    def statistic_of(sums: Sums) -> float:
        return levene(sums, df, expected) if single else layard(sums[0], df, sums[3])

    statistic = statistic_of(observed)
    p = simulated_p(statistic, map(statistic_of, draws))
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(df >= _FEWEST_DF, squares / df, np.nan)
    scatter, nothing = scatter_of_repeats(fit, name, levels, score.scope), _CONSTANT
    if scatter is not None:
        df, nothing = scatter[1], _CONSTANT**2  # no residual of another level is in it
        variance = np.where(df >= _FEWEST_DF, scatter[0] ** 2, np.nan)
    sd = np.sqrt(variance)
    # chi-squared with the degrees of freedom that match the kurtosis
    nu = np.maximum(df, 1.0) / max(1.0 + 0.5 * kurtosis, 0.25)
    finite = np.isfinite(variance)
    constant = finite & (variance <= nothing * np.nanmax(variance, initial=0.0))
    if finite.sum() < 2:
        ratio, p, finding = float("nan"), float("nan"), "too few rows per level"
    elif constant.any():
        ratio, finding = float("inf"), "no residual variation in some"
    else:
        ratio = float(np.nanmax(sd) / np.nanmin(sd))
        finding = f"largest sd {format_number(ratio, 3)} times the smallest"
    if score.two_valued and (fit.scope is None or name != fit.scope.compared):
        severity, advice = "fine", "The variance of scores that take two values follows from their mean."
    else:
        severity, advice = _decide(fit, name, levels, sd, constant, ratio, p, score)
    check = Finding(severity, "scale", finding, advice, subject=f"by {name}", value=ratio, p_value=p)
    ci_low, ci_high = map(np.sqrt, variance_interval(variance, nu, 0.95))
    columns = {"level": levels, "df": df, "relative_sd": sd, "ci_low": ci_low, "ci_high": ci_high}
    return judged(
        check,
        f"Residual scale by {name}",
        pd.DataFrame(columns),
        {"column": name, "kurtosis": kurtosis, "ratio": ratio, "statistic": statistic},
        facts=("relative_sd: residual standard deviation over the one that the model gives the level.",),
        formats={"df": ".1f"},
    )


def settle(scales: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """Name one cause where several columns differ in scale: noisy benchmarks make noisy seeds and a trend."""
    serious = [s for s in scales if s.severity == "warning" and s.column != FITTED]
    if not serious:
        return scales
    cause = max(serious, key=lambda s: s.ratio)
    advice = f"May follow from the scales by {cause.column}, which differ most: settle those first, then look again."

    def settled(part: Answer) -> Answer:
        if part is cause or part.severity in ("skipped", "fine"):
            return part
        return judged_as(part, replace(part.check, severity="note", advice=advice))

    return tuple(map(settled, scales))


def _decide(
    fit: LmmFit, name: str, levels: tuple[str, ...], sd: Array, constant: Mask, ratio: float, p: float, score: Score
) -> tuple[str, str]:
    if np.isnan(ratio):
        return "skipped", "Too few rows per level to judge."
    where = "the " if name == FITTED else ""
    if constant.any():
        named = [level for level, flag in zip(levels, constant, strict=True) if flag]
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        ends = f"No residual variation in {', '.join(named[:_MOST_NAMED])}{more}."
    else:
        most, least = levels[int(np.nanargmax(sd))], levels[int(np.nanargmin(sd))]
        ends = f"Scores scatter most in {where}{most}, least in {where}{least}."
    if p > NOTE_P:
        if constant.any():
            return "skipped", f"{ends} That alone shows no difference in scale beyond chance."
        return "fine", "No difference in scale beyond chance."
    if ratio < SD_NOTE:
        return "fine", "Scales differ detectably, but too little to matter."
    severe = ratio >= SD_WARNING and p <= WARNING_P
    remedy = (
        _on_a_trend(fit, ratio, score, severe=severe) if name == FITTED else _on_levels(fit, name, score, severe=severe)
    )
    return ("warning" if severe else "note"), f"{ends} {remedy}"


def _on_levels(fit: LmmFit, column: str, score: Score, *, severe: bool) -> str:
    """What to do about scales that differ between levels, measured where it can be."""
    apart = advice("value", name="dispersion", value=column)
    if not severe:
        return f"Moderate: averages over the levels stand. A fit with {apart} would weigh them."
    if fit.dispersion == column:
        return "The model has their residual variances already: look for outliers within levels."
    together = score.one_scale() if fit.scope is None or column == fit.scope.cluster else ""
    if fit.dispersion is not None:
        scaled = f"Put scores on one scale with {together}, or merge" if together else "Merge"
        return f"{scaled} columns into one for {advice('argument', name='dispersion')}."
    scaled = f" or put scores on one scale with {together}" if together else ""
    return f"Fit with {apart}{scaled}: otherwise the noisiest decide the result."


def _on_a_trend(fit: LmmFit, ratio: float, score: Score, *, severe: bool) -> str:
    """Logarithms where the model of them has no such trend."""
    start = "" if severe else "A moderate trend: averages stand. "
    after = _ratio_of_logarithms(fit) if score.by_log else float("inf")
    if after < max(np.sqrt(ratio), SD_NOTE):
        now = format_number(ratio, 2) if np.isfinite(ratio) else "infinite"
        return f"{start}Model log(score): there the ratio is {format_number(after, 2)} instead of {now}."
    together = score.one_scale()
    if together:
        return f"{start}Put scores on one scale with {together}."
    confirm = advice("sign_flip_test")
    return f"{start}Averages are estimated well, their errors less so: confirm the tests with {confirm}."


def _ratio_of_logarithms(fit: LmmFit) -> float:
    """Largest over smallest residual standard deviation by fifths of the fitted value, of the model of log(score)."""
    from lmemtest.lmm.model.fitting import fit_parsed

    if fit.data is None or fit.weights is not None:
        return float("inf")
    parsed = replace(fit.design.parsed, response_function="log")
    try:
        again = fit_parsed(parsed, fit.data, reml=fit.reml, dispersion=fit.dispersion)
    except LmemtestError:
        return float("inf")
    rows = rows_of(again)
    residual = again.cell_residuals()[rows.cell] + rows.deviation
    fifths = _fifths(again.cell_predictions())[rows.cell]
    n = np.bincount(fifths, rows.count, len(_FIFTHS))
    sd = np.sqrt(np.bincount(fifths, rows.count * residual**2, len(_FIFTHS))[n > 0] / n[n > 0])
    return float(sd.max() / sd.min()) if rows.single and sd.min() > 0 else float("inf")
