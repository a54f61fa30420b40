"""What a single benchmark, seed or run does to the conclusions: each level of a group is left out in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest._options import ADJUSTMENT_NAMES, ADJUSTMENTS, DDF_METHODS, DDF_NAMES, JOINT_ADJUSTMENTS
from lmemtest._replicates import Failure, check_replicates, replicate
from lmemtest._result import Result, result
from lmemtest._rounding import below, written
from lmemtest._threads import one_blas_thread
from lmemtest._validate import as_frame, check_choice, check_columns, check_fraction, check_names
from lmemtest.errors import ArgumentError
from lmemtest.inference.diagnostics.check import Check
from lmemtest.inference.diagnostics.left_out import Deletion, Estimates, Levels, Reference, Refit, p_values
from lmemtest.inference.means.joint import fit_for_ddf
from lmemtest.inference.means.reference_grid import check_fit, check_specs
from lmemtest.words import counted, format_number, format_p, listed, p_text

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

# The refits have the standard errors of the model, and "stepdown" and "shaffer" count pairs of all means.
INFLUENCE_ADJUSTMENTS = tuple(name for name in ADJUSTMENTS if name not in (*JOINT_ADJUSTMENTS, "stepdown", "shaffer"))
SURPRISING = 0.05  # a level stands out where chance moves the results as much in fewer tables
CLEAR = 2.0  # times alpha: a p-value of 0.04 that becomes 0.06 says less about a level than about the threshold
LOUD = 0.5  # a level that holds more than this share of the residual variance is loud
_NAMED = 3  # levels or comparisons that a sentence names


@result
class InfluenceResult(Result):
    """A fit without each level of a group in turn.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per level, in the order of the levels:
        ``level``, ``n_rows`` (left out), ``cooks_distance``, ``covratio``, ``largest_dfbetas`` (by absolute value,
        with its sign), ``dfbetas_term``, ``residual_ratio`` (residual variance without over with the level; NaN
        where there are several), ``largest_shift``, ``shift_of`` (the comparison), ``chance_p`` (of the most
        surprising shift, Bonferroni over levels and comparisons), ``n_compared``, ``n_changed`` (verdicts),
        ``n_clear`` (of these, where one p-value is below alpha and the other above twice alpha), ``converged``,
        ``reason`` (why there is no refit, or what it does not identify; else empty).
    effects : pandas.DataFrame
        One row per level and fixed effect: level, term, estimate (without the level), change (without minus with),
        dfbetas (change over the standard error without the level).
    components : pandas.DataFrame
        One row per level and variance component: level, group, name1, name2 (as in ``fit.varcorr``), variance
        (without the level), change.
    comparisons : pandas.DataFrame
        One row per level and comparison: level, left, right, estimate, se, df, p_value (adjusted), change, shift
        (change over the standard error of the whole table), chance_p (how often chance moves it so much, this one
        test alone), decision_changes. Without a factor to compare: the coefficients, with an empty `right`.
    whole : pandas.DataFrame
        The comparisons with all levels: left, right, estimate, se, df, p_value.
    group : str
        What was left out.
    specs : tuple of str
        Factors whose means are compared; empty: the coefficients are looked at.
    alpha : float
        Level of the verdicts.
    adjust, ddf : str
        Adjustment of the p-values in each table; rule for the degrees of freedom.
    formula : str
        The model.
    n_rows : int
        Rows of the whole table.
    missing_term : str
        Random effect that would let differences vary between the levels, where the model lacks it.
    notes : tuple of str
        What else a reader must know.
    """

    parts = {name: name for name in ("table", "effects", "components", "comparisons", "whole")}
    figure = "influence_plot"

    table: pd.DataFrame
    effects: pd.DataFrame
    components: pd.DataFrame
    comparisons: pd.DataFrame
    whole: pd.DataFrame
    group: str
    specs: tuple[str, ...]
    alpha: float
    adjust: str
    ddf: str
    formula: str
    n_rows: int
    missing_term: str
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """One line above the table."""
        return f"Influence of each {self.group}"

    @property
    def facts(self) -> tuple[str, ...]:
        """How the table was obtained."""
        return (
            f"{self.formula}; refitted without each level of {self.group}. {DDF_NAMES[self.ddf]} degrees of freedom, "
            f"p-values with {ADJUSTMENT_NAMES[self.adjust]} adjustment in each table, verdicts at "
            f"{100 * self.alpha:.4g} %; shifts in standard errors of the whole table.",
        )

    def shown(self) -> pd.DataFrame:
        """The most influential levels first."""
        columns = ["level", "n_rows", "cooks_distance", "residual_ratio", "largest_shift", "shift_of", "chance_p"]
        columns += ["n_changed", "n_clear"] + (["reason"] if (self.table["reason"] != "").any() else [])
        order = self.table.sort_values("cooks_distance", ascending=False, kind="stable")
        return order[columns].reset_index(drop=True)

    def check(self) -> Check:
        """The line of the diagnosis, about the level that moves the estimates most."""
        distance = self.table["cooks_distance"].to_numpy(dtype=float)
        found, value = "no refit identifies the estimates", float("nan")
        if np.isfinite(distance).any():
            i = int(np.nanargmax(distance))
            value = float(distance[i])
            found = f"largest Cook's distance {written(value, '.2g')} ({self.table['level'].iloc[i]})"
        return Check(
            check="influence",
            subject=f"of each {self.group}",
            found=found,
            value=value,
            decision=self.decision,
            advice=" ".join(self.sentences()),
        )

    # -- words ----------------------------------------------------------------------------------------------------

    def _changing(self) -> pd.DataFrame:
        """Levels without which a verdict changes, clear changes first, then surprising ones."""
        rows = self.table[self.table["n_changed"] > 0]
        return rows.sort_values(["n_clear", "chance_p", "n_changed"], ascending=[False, True, False], kind="stable")

    def _outlying(self) -> pd.DataFrame:
        return self.table[self.table["chance_p"] < SURPRISING].sort_values("chance_p", kind="stable")

    def _loud(self) -> pd.DataFrame:
        """Levels with few of the rows and most of the residual variance."""
        few = self.table["n_rows"] < LOUD * self.n_rows
        return self.table[few & (self.table["residual_ratio"] < LOUD)].sort_values("residual_ratio", kind="stable")

    def _failed(self) -> pd.DataFrame:
        return self.table[self.table["cooks_distance"].isna()]

    @property
    def decision(self) -> str:
        """How serious it is: "fine", "look" or "act".

        "act": a verdict rests on a level that stands out from the others more than chance explains (``chance_p`` below
        0.05). "look": a verdict changes clearly without some level (one p-value below alpha, the other above twice
        alpha), or a level stands out, or one level with fewer than half of the rows holds more than half of the
        residual variance, or the model cannot be fitted without a level, or no comparison has a test. "fine": none of
        these; verdicts that change by a hair are named in the sentences.
        """
        changing, outlying = self._changing(), self._outlying()
        if len(changing) and changing.index.isin(outlying.index).any():
            return "act"
        clear = changing[changing["n_clear"] > 0]
        return "look" if self._untested() or any(map(len, (clear, outlying, self._loud(), self._failed()))) else "fine"

    def _untested(self) -> bool:
        """There are comparisons, and none of them has a test."""
        return len(self.whole) > 0 and not self.whole["p_value"].notna().any()

    def sentences(self) -> tuple[str, ...]:
        """What was found and what to do."""
        changing, outlying, loud, failed = self._changing(), self._outlying(), self._loud(), self._failed()
        both = changing[changing.index.isin(outlying.index)]
        parts = []
        if len(both):
            parts += [self._change_of(both.iloc[0]), *self._others(changing)]
            parts.append(self._stands_out(both.iloc[0]))
            parts.append(self._advice(self._name(both.iloc[0])))
        elif len(changing):
            parts += [self._change_of(changing.iloc[0]), *self._others(changing)]
            if len(outlying):
                parts.append(self._stands_out(outlying.iloc[0]))
                parts.append("The verdicts that change are close calls.")
            else:
                parts.append(self._close_calls(bool(changing["n_clear"].any())))
        elif len(outlying):
            parts.append(self._stands_out(outlying.iloc[0]))
            name = self._name(outlying.iloc[0])
            parts.append(f"No verdict depends on it, so the conclusions stand; check the runs of {name} all the same.")
        elif len(failed) < len(self.table):
            parts.append(self._calm())
        if len(outlying) and self.missing_term:
            parts.append(
                f"The model takes differences to be the same for every {self.group}: try it with {self.missing_term}."
            )
        if len(loud):
            name, fall = self._name(loud.iloc[0]), 100 * (1 - loud.iloc[0]["residual_ratio"])
            apart = in_words_of(python="dispersion=", command_line="--dispersion")
            parts.append(
                f"Without {name} the residual variance falls by {written(fall, '.0f')} %: most of the noise is "
                f"there. Give each "
                f"level a variance of its own ({apart}), or normalise the scores."
            )
        if len(failed):
            parts.append(
                f"The model cannot be fitted without {listed(failed['level'], most=_NAMED)} "
                f"({failed.iloc[0]['reason'].rstrip('.')}): it rests on "
                + ("this level." if len(failed) == 1 else "each of these.")
            )
        return tuple(parts)

    def _name(self, row: pd.Series[Any]) -> str:
        """A level as a reader recognises it: a bare number gets the name of its group."""
        level = str(row["level"])
        return f"{self.group} {level}" if level[:1].isdigit() or level[:1] == "-" else level

    def _calm(self) -> str:
        n, m = len(self.table), int(self.whole["p_value"].notna().sum())
        if self._untested():
            return (
                f"None of the {len(self.whole)} comparisons has a test in the whole table, because the data do not "
                f"identify it, so there is no verdict that a single {self.group} could change. Compare what the design "
                "has: within levels of another factor, or without the empty cells."
            )
        if not m:
            return f"Leaving out any one of the {n} levels of {self.group} changes nothing that is tested."
        size = self.table["largest_shift"].abs()
        out = (
            f"No verdict depends on a single {self.group}: leaving out any one of the {n} levels changes none of the "
            f"{m} comparisons at {100 * self.alpha:.4g} %"
            if m > 1
            else f"The verdict does not depend on a single {self.group}: leaving out any one of the {n} levels does "
            f"not change it at {100 * self.alpha:.4g} %"
        )
        if not size.notna().any():
            return out + "."
        row = self.table.iloc[int(np.nanargmax(size.to_numpy()))]
        return (
            f"{out}; the largest shift is {format_number(abs(row['largest_shift']), 2)} standard errors "
            f"({row['shift_of']} without {self._name(row)})."
        )

    def _change_of(self, row: pd.Series[Any]) -> str:
        """How the verdicts change without one level."""
        m, count = int(row["n_compared"]), int(row["n_changed"])
        here = self.comparisons[self.comparisons["level"] == row["level"]].reset_index(drop=True)
        shown = [
            f"{comparison_label(left, right)}, p {format_p(before)} -> {format_p(now)}"
            for left, right, before, now, changes in zip(
                here["left"],
                here["right"],
                self.whole["p_value"],
                here["p_value"],
                here["decision_changes"],
                strict=True,
            )
            if changes
        ]
        verb = "changes its verdict" if count == 1 else "change their verdict"
        return (
            f"Without {self._name(row)}, {count} of {m} comparison{'s' * (m != 1)} {verb} at {100 * self.alpha:.4g} % "
            f"({'; '.join(shown[:_NAMED])}{'; ...' * (count > _NAMED)})."
        )

    def _others(self, changing: pd.DataFrame) -> list[str]:
        others = len(changing) - 1
        return [f"Verdicts also change without {counted(others, 'other level')} of {self.group}."] if others else []

    def _stands_out(self, row: pd.Series[Any]) -> str:
        """The comparison that a level moves most surprisingly."""
        here = self.comparisons[self.comparisons["level"] == row["level"]]
        most = here.iloc[int(np.nanargmin(here["chance_p"].to_numpy()))]
        moved, size = comparison_label(most["left"], most["right"]), format_number(abs(most["shift"]), 2)
        return (
            f"{self._name(row)} stands out: it moves {moved} by {size} standard errors, more than "
            f"chance explains ({p_text(row['chance_p'])})."
        )

    def _close_calls(self, clear: bool) -> str:
        """What to make of verdicts that change while no level stands out."""
        so = f"No {self.group} stands out more than chance explains"
        if clear:
            return (
                f"{so}, so this is a matter of too little evidence and not of one {self.group}: call these comparisons "
                "undecided, or bring more levels."
            )
        return (
            f"{so} and no p-value moves beyond {100 * CLEAR * self.alpha:.4g} %, so these are close calls: report the "
            "p-values, not the verdicts."
        )

    def _advice(self, level: str) -> str:
        return (
            f"Check the runs of {level} (failed runs, units, mixed-up names); if they are right, report the results "
            "with and without it, and draw no general conclusion from either alone."
        )


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
    progress: bool | None = None,
) -> InfluenceResult:
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
        Degrees of freedom; as in the analysis whose verdicts are checked.
    alpha : float in (0, 1)
        A comparison with a p-value below it counts as a difference.
    n_jobs : int
        Processes; -1 for one per processor.
    progress : bool, optional
        Progress bar on standard error; by default on a terminal, after two seconds.

    Returns
    -------
    InfluenceResult
        ``to_frame()`` has a row per level; ``sentences()`` say what to do.

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

    A verdict changes where a difference is significant in one direction in one table and not in the other. A p-value
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
    >>> from lmemtest.inference.diagnostics.influence import influence
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 17], "tool": ["A", "B"] * 8,
    ...          "task": list("aabbccddeeffgghh")}
    >>> runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> found = influence(lt.fit_lmm("loss ~ tool + (1 | task)", runs), "task")
    >>> found.decision, found.table.loc[found.table["n_changed"] > 0, "level"].to_list()
    ('act', ['h'])
    """
    check_fit(fit, "fit")
    check_choice(adjust, "adjust", INFLUENCE_ADJUSTMENTS)
    check_choice(ddf, "ddf", DDF_METHODS)
    alpha = check_fraction(alpha, "alpha")
    check_replicates(n_jobs=n_jobs, progress=progress)
    columns = _group_columns(fit, group)
    names = _specs(fit, columns, specs)
    _check_not_compared(fit, group, columns, names)
    fit, notes = fit_for_ddf(fit, ddf)
    levels = Levels.of(fit, group, columns)
    reference = Reference.of(replace(fit, data=None), names, ddf)
    task = Deletion(reference, levels)
    # the refits draw nothing; replicate() brings processes, the progress bar and failures that are kept
    results = replicate(
        task, len(levels.labels), rng=0, n_jobs=n_jobs, progress=progress, label=f"Without each {group}"
    )
    found = _Found.of(reference, levels, results, adjust if names else "none", alpha)
    return found.result(notes)


# ---------------------------------------------------------------------- arguments


def _group_columns(fit: Any, group: str) -> tuple[str, ...]:
    """Columns whose combinations are the levels of `group`."""
    if not isinstance(group, str):
        raise ArgumentError(f"group must be a column, or columns joined by ':', got {type(group).__name__}.")
    available = list(fit.cells.frame.columns)
    if fit.data is not None:
        available = list(as_frame(fit.data).collect_schema().names())
    by_term = {bar.group: bar.groups for bar in fit.design.parsed.bars}
    columns = (group,) if group in available else by_term.get(group) or tuple(p.strip() for p in group.split(":"))
    check_columns(columns, available, argument="group")
    if fit.design.parsed.response in columns:
        raise ArgumentError(
            f"group='{group}' is the score itself. Name what the scores belong to, such as the benchmark or the seed."
        )
    return columns


def _specs(fit: Any, group: tuple[str, ...], specs: str | Sequence[str] | None) -> tuple[str, ...]:
    from lmemtest.data.runs import Runs

    factors = tuple(fit.design.factors)
    if specs is not None:
        names = check_names(specs, "specs")
        check_specs(fit, names, (), {})
        return names
    if isinstance(fit.data, Runs) and fit.data.algorithm in factors:
        return (fit.data.algorithm,)
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
        f"verdict could change. Use {instead}; to see what a level does to the comparisons of the others, fit the "
        "model without its rows. specs=() looks at the coefficients instead."
    )


# ---------------------------------------------------------------------- the result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """All refits side by side: one row per level, NaN where there is no refit."""

    reference: Reference
    levels: Levels
    results: list[Any]
    method: str
    alpha: float
    whole_p: FloatArray  # (m,)
    b: FloatArray
    se: FloatArray
    variance: FloatArray
    tested: Estimates
    p_value: FloatArray
    chance_p: FloatArray

    @classmethod
    def of(cls, reference: Reference, levels: Levels, results: list[Any], method: str, alpha: float) -> _Found:
        m = len(reference.functions.names)

        def stack(read: Callable[[Refit], Any], width: int) -> FloatArray:
            rows = [np.full(width, np.nan) if isinstance(item, Failure) else read(item) for item in results]
            return np.array(rows, dtype=float).reshape(len(rows), width)

        tested = Estimates(
            stack(lambda r: r.found.estimate, m), stack(lambda r: r.found.se, m), stack(lambda r: r.found.df, m)
        )
        sizes = np.array([0 if isinstance(item, Failure) else item.n_means for item in results])
        whole = Estimates(*(v[None, :] for v in (reference.found.estimate, reference.found.se, reference.found.df)))
        n_kept = len(reference.fit.problem.kept)
        return cls(
            reference=reference,
            levels=levels,
            results=results,
            method=method,
            alpha=alpha,
            whole_p=p_values(whole, np.array([reference.functions.n_means]), method)[0],
            b=stack(lambda r: r.b, n_kept),
            se=stack(lambda r: r.se, n_kept),
            variance=stack(lambda r: r.variance, len(reference.fit.varcorr)),
            tested=tested,
            p_value=p_values(tested, sizes, method),
            chance_p=stack(lambda r: r.chance_p, m),
        )

    def result(self, notes: Sequence[str]) -> InfluenceResult:
        fit = self.reference.fit
        table, comparisons, whole = self._table(), self._comparisons(), self._whole()
        return InfluenceResult(
            table=table,
            effects=self._effects(),
            components=self._components(),
            comparisons=comparisons,
            whole=whole,
            group=self.levels.group,
            specs=self.reference.specs,
            alpha=self.alpha,
            adjust=self.method,
            ddf=self.reference.ddf,
            formula=fit.label,
            n_rows=fit.nobs,
            missing_term=_missing_term(fit, self.levels.columns, self.reference.specs),
            notes=(*notes, *_notes(fit, table)),
        )

    # -- numbers --------------------------------------------------------------------------------------------------

    @property
    def terms(self) -> list[str]:
        """Names of the coefficients."""
        return [self.reference.fit.design.x_names[j] for j in self.reference.fit.problem.kept]

    @property
    def change(self) -> FloatArray:
        """Of each coefficient, without minus with."""
        fit = self.reference.fit
        return self.b - fit.params.to_numpy()[fit.problem.kept]

    @property
    def shift(self) -> FloatArray:
        """Change of each comparison over its standard error in the whole table."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (self.tested.estimate - self.reference.found.estimate) / self.reference.found.se

    @property
    def clear_changes(self) -> NDArray[np.bool_]:
        """Verdicts that change with a p-value on the far side beyond `CLEAR` times alpha, so not by a hair."""
        return self.decision_changes & (np.maximum(self.whole_p, self.p_value) > CLEAR * self.alpha)

    @property
    def decision_changes(self) -> NDArray[np.bool_]:
        """Which comparisons have another verdict without a level; a comparison that vanishes has none."""
        before = _signs(self.reference.found.estimate, self.whole_p, self.alpha)
        now = _signs(self.tested.estimate, self.p_value, self.alpha)
        return (before != now) & np.isfinite(self.whole_p) & np.isfinite(self.p_value)

    # -- tables ---------------------------------------------------------------------------------------------------

    def _long(self, columns: Mapping[str, Any]) -> pd.DataFrame:
        """One row per level and item: `columns` are ``(items,)``, repeated, or ``(levels, items)``."""
        import pandas as pd

        n = len(self.levels.labels)
        arrays = {key: np.asarray(values) for key, values in columns.items()}
        width = next(iter(arrays.values())).shape[-1]
        long = {key: a.ravel() if a.ndim == 2 else np.tile(a, n) for key, a in arrays.items()}
        return pd.DataFrame({"level": np.repeat(np.array(self.levels.labels, dtype=object), width), **long})

    def _effects(self) -> pd.DataFrame:
        change = self.change
        terms = np.array(self.terms, dtype=object)
        return self._long({"term": terms, "estimate": self.b, "change": change, "dfbetas": change / self.se})

    def _components(self) -> pd.DataFrame:
        whole = self.reference.fit.varcorr
        names = {key: whole[key].to_numpy(dtype=object) for key in ("group", "name1", "name2")}
        return self._long({**names, "variance": self.variance, "change": self.variance - whole["variance"].to_numpy()})

    def _whole(self) -> pd.DataFrame:
        import pandas as pd

        found = self.reference.found
        names = pd.DataFrame(list(self.reference.functions.names), columns=["left", "right"], dtype=object)
        return names.assign(estimate=found.estimate, se=found.se, df=found.df, p_value=self.whole_p)

    def _comparisons(self) -> pd.DataFrame:
        names = np.array(self.reference.functions.names, dtype=object).reshape(-1, 2)
        return self._long(
            {
                "left": names[:, 0],
                "right": names[:, 1],
                "estimate": self.tested.estimate,
                "se": self.tested.se,
                "df": self.tested.df,
                "p_value": self.p_value,
                "change": self.tested.estimate - self.reference.found.estimate,
                "shift": self.shift,
                "chance_p": self.chance_p,
                "decision_changes": self.decision_changes,
            }
        )

    def _table(self) -> pd.DataFrame:
        import pandas as pd

        n, m = self.tested.estimate.shape
        dfbetas, term = _largest(self.change / self.se, self.terms)
        shift, comparison = _largest(self.shift, [comparison_label(*name) for name in self.reference.functions.names])
        residuals = self.reference.fit.residual_variances.to_numpy()
        one = len(residuals) == 1
        done = [None if isinstance(item, Failure) else item for item in self.results]
        return pd.DataFrame(
            {
                "level": list(self.levels.labels),
                "n_rows": self.levels.n_rows(),
                "cooks_distance": [np.nan if item is None else item.cooks_distance for item in done],
                "covratio": [np.nan if item is None else item.covratio for item in done],
                "largest_dfbetas": dfbetas,
                "dfbetas_term": term,
                "residual_ratio": self.variance[:, -1] / residuals[0] if one else np.full(n, np.nan),
                "largest_shift": shift,
                "shift_of": comparison,
                "chance_p": _smallest(self.chance_p, n * m),
                "n_compared": np.isfinite(self.p_value).sum(axis=1),
                "n_changed": self.decision_changes.sum(axis=1),
                "n_clear": self.clear_changes.sum(axis=1),
                "converged": [item is not None and item.converged for item in done],
                "reason": [_reason(item) for item in self.results],
            }
        )


def _signs(estimate: FloatArray, p_value: FloatArray, alpha: float) -> FloatArray:
    """The sign of a significant difference, 0 of any other."""
    with np.errstate(invalid="ignore"):
        return np.where(below(p_value, alpha), np.sign(estimate), 0.0)


def _largest(values: FloatArray, names: Sequence[str]) -> tuple[FloatArray, list[str]]:
    """In each row the value that is largest in size, and its name; NaN and empty where there is none."""
    if not values.shape[1]:
        return np.full(len(values), np.nan), [""] * len(values)
    size = np.where(np.isfinite(values), np.abs(values), -1.0)
    place = size.argmax(axis=1)
    there = size.max(axis=1) >= 0
    largest = np.where(there, values[np.arange(len(values)), place], np.nan)
    return largest, [names[j] if ok else "" for j, ok in zip(place, there, strict=True)]


def _smallest(chance: FloatArray, tests: int) -> FloatArray:
    """Bonferroni's p-value of each row; NaN where nothing is tested."""
    smallest = np.where(np.isfinite(chance), chance, np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isfinite(smallest), np.minimum(1.0, max(tests, 1) * smallest), np.nan)


def _missing_term(fit: Any, group: tuple[str, ...], specs: tuple[str, ...]) -> str:
    """The random term that would let differences vary between the levels of the group, if the model lacks it."""
    if not specs or set(group) & {*specs, *fit.design.factors}:
        return ""
    for bar, term in zip(fit.design.parsed.bars, fit.design.random, strict=True):
        varies = len(term.names) > 1 and set(bar.groups) == set(group)
        if varies or set(bar.groups) == {*group, *specs}:
            return ""
    return f"(1 | {':'.join((*group, *specs))})"


def _reason(item: Refit | Failure) -> str:
    """Why there is no refit, without the class of the error, or what a refit lacks."""
    return item.reason.partition(": ")[2] if isinstance(item, Failure) else item.reason


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
