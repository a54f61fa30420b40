"""What a single benchmark, seed or run does to the conclusions: each level of a group is left out in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.caller import advice
from lmemtest.core.hints import guided
from lmemtest.core.options import ADJUSTMENT_NAMES, ADJUSTMENTS, DDF_METHODS, DDF_NAMES, JOINT_ADJUSTMENTS
from lmemtest.core.replicates import Executor, check_replicates
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import as_frame, check_choice, check_columns, check_fraction, check_names
from lmemtest.core.verdicts import Finding
from lmemtest.core.words import counted, format_number, format_p, listed, p_text
from lmemtest.errors import ArgumentError
from lmemtest.lmm.diagnostics.left_out import Deletion, evaluate
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.distributions.studentized_range import ptukey
from lmemtest.lmm.means.adjust import adjust_raw
from lmemtest.lmm.means.reference_grid import check_specs
from lmemtest.lmm.model.given import check_fit, check_linear

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array


# The refits have the standard errors of the model; "stepdown", "singlestep" and "shaffer" count pairs of all means.
INFLUENCE_ADJUSTMENTS = tuple(
    name for name in ADJUSTMENTS if name not in (*JOINT_ADJUSTMENTS, "stepdown", "singlestep", "shaffer")
)
SURPRISING = 0.05  # a level stands out where chance moves the results as much in fewer tables
CLEAR = 2.0  # times alpha: a p-value of 0.04 that becomes 0.06 says less about a level than about the threshold
LOUD = 0.5  # a level that holds more than this share of the residual variance is loud
_NAMED = 3  # levels or comparisons that a sentence names


@guided
@one_blas_thread()
def influence(
    fit: Any,
    group: str,
    *,
    specs: str | Sequence[str] | None = None,
    adjust: str = "tukey",
    ddf: str = "satterthwaite",
    alpha: float = 0.05,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Answer:
    """Refit a model without each level of a group, and see which conclusions change.

    Parameters
    ----------
    fit : LmmFit
        The model with all levels.
    group : str
        What is left out: a column of the data, such as the benchmark, or several joined by colons, such as
        "benchmark:seed" (one run at a time). "seed" leaves out a seed on all benchmarks. At least three levels.
    specs : str or sequence of str, optional
        Factors of the fixed part whose means are compared. By default the algorithms of a `Runs` table, else the only
        factor of the fixed part (besides `group`). ``()``, and a fixed part without factors: the coefficients are
        looked at, without adjustment.
    adjust : {"tukey", "holm", "sidak", "bonferroni", "fdr", "none"}
        Adjustment of the p-values for the number of comparisons.
    ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
        Degrees of freedom; as in the analysis whose decisions are checked.
    alpha : float in (0, 1)
        A comparison with a p-value below it counts as a difference.
    n_jobs, executor, progress : int, object with a ``map``, bool
        Processes (-1: one per processor), or what computes instead, such as a client of Dask; a progress bar, by
        default on a terminal after two seconds.

    Returns
    -------
    Answer
        ``table``, one row per level, in the order of the levels: ``level``, ``n_rows`` (left out), ``cooks_distance``,
        ``covratio``, ``largest_dfbetas`` (by absolute value, with its sign), ``dfbetas_term``, ``residual_ratio``
        (residual variance without over with the level; NaN where there are several), ``largest_shift``, ``shift_of``
        (the comparison), ``chance_p`` (of the most surprising shift, Bonferroni over levels and comparisons),
        ``n_compared``, ``n_changed`` (decisions), ``n_clear`` (of these, where one p-value is below alpha and the other
        above twice alpha), ``converged``, ``reason`` (why there is no refit, or what it does not identify; else empty).

        ``effects``, one row per level and fixed effect: ``level``, ``term``, ``estimate`` (without the level),
        ``change`` (without minus with), ``dfbetas`` (change over the standard error without the level).
        ``components``, one row per level and variance component: ``level``, ``group``, ``name1``, ``name2`` (as in
        ``fit.varcorr``), ``variance`` (without the level), ``change``. ``comparisons``, one row per level and
        comparison: ``level``, ``left``, ``right``, ``estimate``, ``se``, ``df``, ``p_value`` (adjusted), ``change``,
        ``shift`` (change over the standard error of the whole table), ``chance_p`` (how often chance moves it so much,
        this one test alone), ``decision_changes``; without a factor to compare the coefficients, with an empty
        ``right``. ``whole``, the comparisons with all levels: ``left``, ``right``, ``estimate``, ``se``, ``df``,
        ``p_value``.

        ``severity`` and ``check``, its line in a diagnosis: "warning" where a decision rests on a level that stands out
        from the others more than chance explains (``chance_p`` below 0.05); "note" where a decision changes clearly
        without some level (one p-value below alpha, the other above twice alpha), or a level stands out, or one level
        with fewer than half of the rows holds more than half of the residual variance, or the model cannot be fitted
        without a level, or no comparison has a test; "fine": none of these, and decisions that change by a hair are
        named in the sentences. ``missing_term``: the random effect that would let differences vary between the levels,
        where the model lacks it. ``group``, ``specs`` (factors whose means are compared; empty: the coefficients are
        looked at), ``alpha``, ``adjust``, ``ddf``, ``formula``, ``n_rows``.

    Raises
    ------
    UnknownColumnError
        If `group` or `specs` name something that is not there.
    ArgumentError
        If several factors could be compared and `specs` does not choose, `group` is what is compared, or an option is
        unknown.
    DataError
        If the group has fewer than three levels.

    Notes
    -----
    Without level i the fixed effects are b(i), with all levels b, with covariance V. Cook's distance is
    (b(i) - b)' V^-1 (b(i) - b) / p over the p coefficients that both tables identify (Demidenko & Stukel 2005; lme4
    multiplies it by (levels - p) / levels). DFBETAS is the change over the standard error without the level.
    COVRATIO is det V(i) / det V. Changes are "without minus with", as in lme4.

    How far may chance move a difference l'b? Least squares with known variances has
    Var(l'b(i) - l'b) = Var l'b(i) - Var l'b (Hausman 1978), for any design. With the variances as estimated without
    the level, which the level itself cannot inflate, the ratio is compared with t on the degrees of freedom of
    l'b(i), at most levels - 2: in a balanced table of two algorithms that is exactly the test by externally
    studentised residuals of the differences per level. (The limit matters where a variance is estimated as zero
    without the level, and with it the degrees of freedom jump; without the limit one clean table in eight had a level
    that stands out, in a simulation of 8 benchmarks.) ``chance_p`` is Bonferroni's over all levels and comparisons. A
    model with residual variances per group has no such test; a note says so.

    A decision changes where a difference is significant in one direction in one table and not in the other. A p-value
    near alpha crosses it easily, because every level is evidence: with 12 benchmarks and moderate differences this
    happens in most tables in which nothing is wrong. So only a change beyond twice alpha counts.

    References
    ----------
    Cook (1977), doi:10.1080/00401706.1977.10489493; Demidenko & Stukel (2005). Influence analysis for linear
    mixed-effects models. Stat. Med. 24, 893-909; Belsley, Kuh & Welsch (1980), doi:10.1002/0471725153; Hausman (1978),
    doi:10.2307/1913827

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.lmm.diagnostics.influence import influence
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 17], "tool": ["A", "B"] * 8,
    ...          "task": list("aabbccddeeffgghh")}
    >>> runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> found = influence(lt.fit_lmm("loss ~ tool + (1 | task)", runs), "task")
    >>> found.severity, found.table.loc[found.table["n_changed"] > 0, "level"].to_list()
    ('warning', ['h'])
    """
    check_fit(fit, "fit")
    check_linear(fit, "influence()", "Refit without the rows in question.")
    check_choice(adjust, "adjust", INFLUENCE_ADJUSTMENTS)
    check_choice(ddf, "ddf", DDF_METHODS)
    alpha = check_fraction(alpha, "alpha")
    check_replicates(n_jobs=n_jobs, executor=executor, progress=progress)
    columns = group_columns(fit, group)
    names = _specs(fit, columns, specs)
    _check_not_compared(fit, group, columns, names)
    fit, ddf, notes = fit.for_ddf(ddf)
    deletion = Deletion.of(fit, group, columns, names, ddf)
    refits = deletion.refits(n_jobs=n_jobs, executor=executor, progress=progress, label=f"Without each {group}")
    adjust = adjust if names else "none"
    tables = _tables(deletion, refits, adjust, alpha)
    part = Answer(
        question="influence",
        title=f"Influence of each {group}",
        tables=tables,
        values={
            "group": group,
            "specs": names,
            "alpha": alpha,
            "adjust": adjust,
            "ddf": ddf,
            "formula": fit.label,
            "n_rows": fit.nobs,
            "missing_term": _missing_term(fit, columns, names),
        },
        facts=(
            f"{fit.label}; refitted without each level of {group}. {DDF_NAMES[ddf]} degrees of freedom, "
            f"p-values with {ADJUSTMENT_NAMES[adjust]} adjustment in each table, decisions at "
            f"{100 * alpha:.4g} %; shifts in standard errors of the whole table.",
        ),
        notes=(*notes, *_notes(fit, tables["table"])),
        printed=_printed(tables["table"]),
        figure="influence_plot",
    )
    part = replace(part, findings=_sentences(part))
    check = _finding(part)
    return replace(part, values={**part.values, "check": check, "severity": check.severity})


def _printed(table: pd.DataFrame) -> pd.DataFrame:
    columns = ["level", "n_rows", "cooks_distance", "residual_ratio", "largest_shift", "shift_of", "chance_p"]
    columns += ["n_changed", "n_clear"] + (["reason"] if (table["reason"] != "").any() else [])
    return table.sort_values("cooks_distance", ascending=False, kind="stable")[columns].reset_index(drop=True)


# ---------------------------------------------------------------------- arguments


def group_columns(fit: Any, group: str, argument: str = "group") -> tuple[str, ...]:
    """Columns whose combinations are the levels of `group`."""
    if not isinstance(group, str):
        raise ArgumentError(f"{argument} must be a column, or columns joined by ':', got {type(group).__name__}.")
    available = list(fit.cells.frame.columns)
    if fit.data is not None:
        available = list(as_frame(fit.data).collect_schema().names())
    by_term = {bar.group: bar.groups for bar in fit.design.parsed.bars}
    columns = (group,) if group in available else by_term.get(group) or tuple(p.strip() for p in group.split(":"))
    check_columns(columns, available, argument=argument)
    if fit.design.parsed.response in columns:
        raise ArgumentError(
            f"{argument}='{group}' is the score itself. Name what the scores belong to, such as the benchmark or the "
            "seed."
        )
    return columns


def _specs(fit: Any, group: tuple[str, ...], specs: str | Sequence[str] | None) -> tuple[str, ...]:
    factors = tuple(fit.design.factors)
    if specs is not None:
        names = check_names(specs, "specs")
        check_specs(fit, names, (), {})
        return names
    if fit.scope is not None and fit.scope.compared in factors:
        return (fit.scope.compared,)
    candidates = [name for name in factors if (name,) != group] or list(factors)
    if len(candidates) > 1:
        raise ArgumentError(
            f"specs must say what is compared, because the fixed part has several factors: {listed(candidates)}. "
            f"Write for instance specs='{candidates[0]}'."
        )
    return tuple(candidates)


def _check_not_compared(fit: Any, group: str, columns: tuple[str, ...], specs: tuple[str, ...]) -> None:
    """Refuse to leave out what is compared: each of its means would be gone, and the others nearly the same."""
    if not set(columns) <= set(specs):
        return
    others = [bar.group for bar in fit.design.parsed.bars if not set(bar.groups) <= set(specs)]
    instead = f"group='{others[0]}'" if others else "a group of scores, such as the benchmark or the seed"
    raise ArgumentError(
        f"group='{group}' is what is compared, and without one of its levels there is no comparison with it whose "
        f"decision could change. Use {instead}; to see what a level does to the comparisons of the others, fit the "
        "model without its rows. specs=() looks at the coefficients instead."
    )


# ---------------------------------------------------------------------- the tables


def _tables(deletion: Deletion, refits: dict[str, NDArray[Any]], adjust: str, alpha: float) -> dict[str, pd.DataFrame]:
    """The parts of the result; all arrays have a row per level, NaN where there is no refit."""
    import pandas as pd

    fit, labels = deletion.fit, np.array(deletion.labels, dtype=object)
    names, L, n_means = deletion.tests
    estimate, se, df = evaluate(fit, L, deletion.ddf)
    whole_p = _p_values(estimate[None], se[None], df[None], np.array([n_means]), adjust)[0]
    p_value = _p_values(refits["estimate"], refits["se"], refits["df"], refits["n_means"], adjust)
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = (refits["estimate"] - estimate) / se  # in standard errors of the whole table
        before = np.where(below(whole_p, alpha), np.sign(estimate), 0.0)
        now = np.where(below(p_value, alpha), np.sign(refits["estimate"]), 0.0)
    # a comparison that vanishes has no decision; a change is clear where a p-value is beyond CLEAR times alpha
    changes = (before != now) & np.isfinite(whole_p) & np.isfinite(p_value)
    clear = changes & (np.maximum(whole_p, p_value) > CLEAR * alpha)
    kept, components = fit.problem.kept, fit.varcorr
    terms = np.array(fit.design.x_names, dtype=object)[kept]
    change = refits["b"] - fit.params.to_numpy()[kept]
    left, right = np.array(names, dtype=object).reshape(-1, 2).T

    def long(**columns: Any) -> pd.DataFrame:
        """One row per level and item of ``(items,)``, which are repeated, or ``(levels, items)``."""
        arrays = {name: np.broadcast_to(a, (len(labels), np.shape(a)[-1])) for name, a in columns.items()}
        width = next(iter(arrays.values())).shape[1]
        return pd.DataFrame({"level": np.repeat(labels, width), **{name: a.ravel() for name, a in arrays.items()}})

    dfbetas, dfbetas_term = _largest(change / refits["b_se"], terms)
    largest_shift, shift_of = _largest(shift, [comparison_label(*name) for name in names])
    residual = fit.residual_variances.to_numpy()
    smallest = np.where(np.isfinite(refits["chance_p"]), refits["chance_p"], np.inf).min(axis=1, initial=np.inf)
    table = pd.DataFrame(
        {
            "level": labels,
            "n_rows": np.bincount(deletion.code, weights=deletion.cells.n, minlength=len(labels)).astype(np.intp),
            "cooks_distance": refits["cooks_distance"],
            "covratio": refits["covratio"],
            "largest_dfbetas": dfbetas,
            "dfbetas_term": dfbetas_term,
            "residual_ratio": refits["variance"][:, -1] / residual[0] if len(residual) == 1 else np.nan,
            "largest_shift": largest_shift,
            "shift_of": shift_of,
            "chance_p": np.where(np.isfinite(smallest), np.minimum(1.0, max(shift.size, 1) * smallest), np.nan),
            "n_compared": np.isfinite(p_value).sum(axis=1),
            "n_changed": changes.sum(axis=1),
            "n_clear": clear.sum(axis=1),
            "converged": refits["converged"],
            "reason": refits["reason"].astype(object),
        }
    )
    return {
        "table": table,
        "effects": long(term=terms, estimate=refits["b"], change=change, dfbetas=change / refits["b_se"]),
        "components": long(
            **{name: components[name].to_numpy(dtype=object) for name in ("group", "name1", "name2")},
            variance=refits["variance"],
            change=refits["variance"] - components["variance"].to_numpy(),
        ),
        "comparisons": long(
            left=left,
            right=right,
            estimate=refits["estimate"],
            se=refits["se"],
            df=refits["df"],
            p_value=p_value,
            change=refits["estimate"] - estimate,
            shift=shift,
            chance_p=refits["chance_p"],
            decision_changes=changes,
        ),
        "whole": pd.DataFrame(
            {"left": left, "right": right, "estimate": estimate, "se": se, "df": df, "p_value": whole_p}
        ),
    }


def _p_values(estimate: Array, se: Array, df: Array, n_means: Any, method: str) -> Array:
    """Adjusted p-values of several tables at once, ``(tables, m)``, each with its number of means."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(se > 0, estimate / se, np.nan)
    if method == "tukey":
        return ptukey(np.sqrt(2.0) * np.abs(t), np.maximum(n_means, 2)[:, None], df, upper=True)
    raw, tests = two_sided_p(t, df), n_means * (n_means - 1) // 2
    return np.array([adjust_raw(row, method, m) for row, m in zip(raw, tests, strict=True)]).reshape(raw.shape)


def _largest(values: Array, names: Sequence[str]) -> tuple[Array, list[str]]:
    """In each row the value that is largest in size, and its name; NaN and empty where there is none."""
    if not values.shape[1]:
        return np.full(len(values), np.nan), [""] * len(values)
    size = np.where(np.isfinite(values), np.abs(values), -1.0)
    place = size.argmax(axis=1)
    there = size.max(axis=1) >= 0
    largest = np.where(there, values[np.arange(len(values)), place], np.nan)
    return largest, [names[j] if ok else "" for j, ok in zip(place, there, strict=True)]


def _missing_term(fit: Any, group: tuple[str, ...], specs: tuple[str, ...]) -> str:
    """The random term that would let differences vary between the levels of the group, if the model lacks it."""
    if not specs or set(group) & {*specs, *fit.design.factors}:
        return ""
    for bar, term in zip(fit.design.parsed.bars, fit.design.random, strict=True):
        varies = len(term.names) > 1 and set(bar.groups) == set(group)
        if varies or set(bar.groups) == {*group, *specs}:
            return ""
    return f"(1 | {':'.join((*group, *specs))})"


def _notes(fit: Any, table: pd.DataFrame) -> list[str]:
    notes = []
    if fit.dispersion is not None:
        notes.append(
            f"The model has residual variances per level of {fit.dispersion}, for which there is no test of how far "
            "chance moves a difference (chance_p)."
        )
    unconverged = table.loc[~table["converged"] & table["cooks_distance"].notna(), "level"]
    if len(unconverged):
        notes.append(f"The search did not complete its certificate without {listed(unconverged, most=5)}.")
    return notes


def comparison_label(left: str, right: str) -> str:
    """A difference in words; a coefficient has no right side."""
    return f"{left} - {right}" if right else left


# ---------------------------------------------------------------------- words


def _finding(part: Answer) -> Finding:
    """The line of the diagnosis, about the level that moves the estimates most."""
    distance = part.table["cooks_distance"].to_numpy(dtype=float)
    message, value = "no refit identifies the estimates", float("nan")
    if np.isfinite(distance).any():
        i = int(np.nanargmax(distance))
        value = float(distance[i])
        message = f"largest Cook's distance {written(value, '.2g')} ({part.table['level'].iloc[i]})"
    subject, advice = f"of each {part.group}", " ".join(part.findings)
    return Finding(_severity(part), "influence", message, advice, subject=subject, value=value)


def _striking(part: Answer) -> tuple[pd.DataFrame, ...]:
    """Levels without which a decision changes (clear, then surprising changes first), that stand out, that hold
    most of the residual variance in few of the rows, and without which there is no fit."""
    t = part.table
    changing = t[t["n_changed"] > 0].sort_values(
        ["n_clear", "chance_p", "n_changed"], ascending=[False, True, False], kind="stable"
    )
    loud = t[(t["n_rows"] < LOUD * part.n_rows) & (t["residual_ratio"] < LOUD)]
    return (
        changing,
        t[t["chance_p"] < SURPRISING].sort_values("chance_p", kind="stable"),
        loud.sort_values("residual_ratio", kind="stable"),
        t[t["cooks_distance"].isna()],
    )


def _severity(part: Answer) -> str:
    """How serious it is; see `influence`."""
    changing, outlying, loud, failed = _striking(part)
    if changing.index.isin(outlying.index).any():
        return "warning"
    clear = changing[changing["n_clear"] > 0]
    return "note" if _untested(part) or any(map(len, (clear, outlying, loud, failed))) else "fine"


def _untested(part: Answer) -> bool:
    """There are comparisons, and none of them has a test."""
    return len(part.whole) > 0 and not part.whole["p_value"].notna().any()


def _sentences(part: Answer) -> tuple[str, ...]:
    """What was found and what to do."""
    changing, outlying, loud, failed = _striking(part)
    both = changing[changing.index.isin(outlying.index)]
    parts = []
    if len(changing):
        others = len(changing) - 1
        parts.append(_change_of(part, (both if len(both) else changing).iloc[0]))
        if others:
            parts.append(f"Decisions also change without {counted(others, 'other level')} of {part.group}.")
    if len(outlying):
        row = (both if len(both) else outlying).iloc[0]
        parts.append(_stands_out(part, row))
        if len(both):
            parts.append(
                f"Check the runs of {_name(part, row)} (failed runs, units, mixed-up names); if they are right, "
                "report the results with and without it, and draw no general conclusion from either alone."
            )
        elif len(changing):
            parts.append("The decisions that change are close calls.")
        else:
            parts.append(
                f"No decision depends on it, so the conclusions stand; check the runs of {_name(part, row)} all the "
                "same."
            )
        if part.missing_term:
            parts.append(
                f"The model takes differences to be the same for every {part.group}: try it with {part.missing_term}."
            )
    elif len(changing):
        so = f"No {part.group} stands out more than chance explains"
        parts.append(
            f"{so}, so this is a matter of too little evidence and not of one {part.group}: call these comparisons "
            "undecided, or add more levels."
            if changing["n_clear"].any()
            else f"{so} and no p-value moves beyond {100 * CLEAR * part.alpha:.4g} %, so these are close calls: "
            "report the p-values, not the decisions."
        )
    elif len(failed) < len(part.table):
        parts.append(_calm(part))
    if len(loud):
        fall = written(100 * (1 - loud.iloc[0]["residual_ratio"]), ".0f")
        apart = advice("argument", name="dispersion")
        parts.append(
            f"Without {_name(part, loud.iloc[0])} the residual variance falls by {fall} %: most of the noise is "
            f"there. Give each level its own variance ({apart}), or normalise the scores."
        )
    if len(failed):
        parts.append(
            f"The model cannot be fitted without {listed(failed['level'], most=_NAMED)} "
            f"({failed.iloc[0]['reason'].rstrip('.')}): it rests on "
            + ("this level." if len(failed) == 1 else "each of these.")
        )
    return tuple(parts)


def _name(part: Answer, row: pd.Series[Any]) -> str:
    """A level as a reader recognises it: a bare number gets the name of its group."""
    level = str(row["level"])
    return f"{part.group} {level}" if level[:1].isdigit() or level[:1] == "-" else level


def _calm(part: Answer) -> str:
    n, m = len(part.table), int(part.whole["p_value"].notna().sum())
    if _untested(part):
        return (
            f"None of the {len(part.whole)} comparisons has a test in the whole table, because the data do not "
            f"identify it, so there is no decision that a single {part.group} could change. Compare what the "
            "design has: within levels of another factor, or without the empty cells."
        )
    if not m:
        return f"Leaving out any one of the {n} levels of {part.group} changes nothing that is tested."
    size = part.table["largest_shift"].abs()
    out = (
        f"No decision depends on a single {part.group}: leaving out any one of the {n} levels changes none of the "
        f"{m} comparisons at {100 * part.alpha:.4g} %"
        if m > 1
        else f"The decision does not depend on a single {part.group}: leaving out any one of the {n} levels does "
        f"not change it at {100 * part.alpha:.4g} %"
    )
    if not size.notna().any():
        return out + "."
    row = part.table.iloc[int(np.nanargmax(size.to_numpy()))]
    return (
        f"{out}; the largest shift is {format_number(abs(row['largest_shift']), 2)} standard errors "
        f"({row['shift_of']} without {_name(part, row)})."
    )


def _change_of(part: Answer, row: pd.Series[Any]) -> str:
    """How the decisions change without one level."""
    m, count = int(row["n_compared"]), int(row["n_changed"])
    here = part.comparisons[part.comparisons["level"] == row["level"]].reset_index(drop=True)
    here = here.assign(before=part.whole["p_value"])[here["decision_changes"]].head(_NAMED)
    changes = "; ".join(
        f"{comparison_label(r.left, r.right)}, p {format_p(r.before)} -> {format_p(r.p_value)}"
        for r in here.itertuples()
    )
    verb = "changes its decision" if count == 1 else "change their decision"
    return (
        f"Without {_name(part, row)}, {count} of {counted(m, 'comparison')} {verb} at {100 * part.alpha:.4g} % "
        f"({changes}{'; ...' * (count > _NAMED)})."
    )


def _stands_out(part: Answer, row: pd.Series[Any]) -> str:
    """The comparison that a level moves most surprisingly."""
    here = part.comparisons[part.comparisons["level"] == row["level"]]
    most = here.iloc[int(np.nanargmin(here["chance_p"].to_numpy()))]
    moved, size = comparison_label(most["left"], most["right"]), format_number(abs(most["shift"]), 2)
    return (
        f"{_name(part, row)} stands out: it moves {moved} by {size} standard errors, more than "
        f"chance explains ({p_text(row['chance_p'])})."
    )
