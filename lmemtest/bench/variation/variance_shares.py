"""Where the variation of the scores comes from: variance components as shares and in words."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.modelling.terms import kind_of
from lmemtest.core.words import GROUPS, plural
from lmemtest.errors import ConvergenceWarning, LmemtestError, UnknownColumnError
from lmemtest.lmm.diagnostics import explained_variance
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.model import LmmFit


def variance_shares(fit: LmmFit, runs: Runs) -> pd.DataFrame:
    """Sources of variation of a fit with their shares, in the order of the formula, the residual last.

    One row per ``term`` of the formula: its ``kind``, a key of `lmemtest.core.words.GROUPS` or "residual", its
    ``meaning`` in words, its part of the ``variance`` of a score with the ``sd``, and its ``share`` in the sum of all.
    A term with slopes contributes the mean over the rows of ``basis' Sigma basis``.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.Runs({"tool": ["A", "A", "B", "B"] * 2, "task": list("wwwwxxxx"),
    ...                 "loss": [1., 2, 3, 4, 5, 7, 6, 6]},
    ...                score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> variance_shares(lt.fit_lmm("loss ~ tool + (1|task)", runs), runs)[["term", "kind", "share"]].round(2)
             term       kind  share
    0  (1 | task)  benchmark   0.85
    1    Residual   residual   0.15
    """
    components = []
    variances = explained_variance(fit).random
    for term, bar, variance in zip(fit.design.random, fit.design.parsed.bars, variances, strict=True):
        columns = {name for effect in bar.effects for name in effect.columns}
        conditions = sorted(columns & set(runs.metafeatures))
        groups = (*bar.groups, runs.algorithm) if term.diagonal and runs.algorithm in columns else bar.groups
        components.append((term.label, groups, conditions, variance))
    total = fit.mean_residual_variance + sum(variance for *_, variance in components)
    kinds = {(kind_of(groups, runs), _noun(groups, runs)) for _, groups, _, _ in components}
    # effects at the levels of a metafeature are what changes between the instances of a benchmark, too
    kinds |= {(kind_of(groups, runs), "instance") for _, groups, conditions, _ in components if conditions}
    parts = [
        (label, kind_of(groups, runs), _meaning(groups, conditions, kinds, runs), variance)
        for label, groups, conditions, variance in components
    ]
    parts.append(("Residual", "residual", f"residual: {_left(kinds, fit, runs)}", fit.mean_residual_variance))
    table = pd.DataFrame(parts, columns=["term", "kind", "meaning", "variance"])
    return table.assign(sd=table["variance"] ** 0.5, share=table["variance"] / total)


def _noun(groups: Iterable[str], runs: Runs) -> str:
    """Benchmarks, or instances where metafeatures distinguish groups."""
    return "instance" if set(groups) & {*runs.metafeatures, *runs.study.crossed} else "benchmark"


def _meaning(groups: tuple[str, ...], conditions: list[str], kinds: set[tuple[str, str]], runs: Runs) -> str:
    kind, noun = kind_of(groups, runs), _noun(groups, runs)
    if kind in ("family", "family_interaction"):
        finest = next(name for name in reversed(groups) if name in runs.family)
        return GROUPS[kind][1].format(noun=plural(finest))
    within = " of a benchmark" if noun == "instance" and (kind, "benchmark") in kinds else ""
    if kind == "run":
        noun = "instance" if runs.metafeatures else "benchmark"
    where = f" on one {noun}" if set(groups) & {*runs.instance} else " on all benchmarks" if runs.instance else ""
    meaning = GROUPS[kind][1].format(noun=noun, within=within, where=where, groups=":".join(groups))
    return f"{meaning}, separately for each {' and '.join(conditions)}" if conditions else meaning


def _left(kinds: set[tuple[str, str]], fit: LmmFit, runs: Runs) -> str:
    names = {kind for kind, _ in kinds}
    sources = []
    if runs.budget is not None and "budget" not in names:
        in_model = runs.budget in fit.design.parsed.columns
        sources.append(f"differences between budgets within a run{', beyond the fixed effect' if in_model else ''}")
    alone = "interaction" not in names and bool(runs.instance)
    if (runs.seed is not None and "run" not in names) or (runs.seed is None and alone):  # single runs hold both
        sources.append("variation between runs")
    if alone:
        sources.append("advantages that change between benchmarks")
    elif runs.metafeatures and ("interaction", "instance") not in kinds:
        sources.append("advantages that change between instances of a benchmark")
    return ", ".join(sources) or "variation between rows of the same run"


def difference_sd(fit: LmmFit, runs: Runs, left: Any, right: Any) -> float:
    """Standard deviation over benchmarks of the true difference of two algorithms; NaN if none can change."""
    places = (*runs.instance, *runs.family)
    parts = [
        pair_variance(fit, runs, index, left, right)
        for index, bar in enumerate(fit.design.parsed.bars)
        if set(bar.groups) <= {runs.algorithm, *places} and set(bar.groups) & set(places)
    ]
    variances = [part for part in parts if part is not None]
    return float(np.sqrt(sum(variances))) if variances else float("nan")


def own_difference_sd(fit: LmmFit, runs: Runs, left: Any, right: Any) -> float:
    """The same standard deviation, estimated from the runs of the two alone.

    A model of several algorithms has one variance for the advantages of all of them, which is that of no pair where
    one of them is more erratic than the others. NaN as above, or if the model cannot be fitted to the two.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, prior="good")
    >>> fit = lt.fit_lmm(lt.recommend(runs).formula, runs)
    >>> [round(sd(fit, runs, "HB", "RS"), 5) for sd in (difference_sd, own_difference_sd)]
    [0.01407, 0.01811]
    """
    if len(runs.algorithms) == 2:
        return difference_sd(fit, runs, left, right)
    try:
        two = runs.filter(**{runs.algorithm: [left, right]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            again = fit_lmm(fit.formula, two, dispersion=fit.dispersion)
    except LmemtestError:
        return float("nan")
    return difference_sd(again, two, left, right)


def pair_variance(fit: LmmFit, runs: Runs, index: int, left: Any, *others: Any) -> float | None:
    """What one random term adds to the variance of the difference of two algorithms; None if it adds to none.

    Of several others the average over those to whose differences it adds.
    """
    bar, S = fit.design.parsed.bars[index], fit.covariances[index]
    if fit.design.random[index].names == ("Intercept",):
        return 2.0 * float(S[0, 0]) if others and runs.algorithm in bar.groups else None
    columns = {name: fit.cells.frame[name].iloc[0] for name in bar.groups if name in fit.cells.frame}
    conditions = [[(name, level) for level in runs.levels(name)] for name in runs.metafeatures if name not in columns]
    try:  # algorithms are compared by their average over the conditions
        basis = np.mean(
            [
                fit.design.random_rows(index, pd.DataFrame({**columns, **dict(at), runs.algorithm: [left, *others]}))[0]
                for at in itertools.product(*conditions)
            ],
            axis=0,
        )
    except UnknownColumnError:  # a slope on something that is not known of a benchmark
        return None
    if runs.algorithm in bar.groups:
        variances = [float(basis[0] @ S @ basis[0] + row @ S @ row) for row in basis[1:]]
    else:
        gaps = [basis[0] - row for row in basis[1:] if not np.array_equal(basis[0], row)]
        variances = [float(gap @ S @ gap) for gap in gaps]
    return float(np.mean(variances)) if variances else None


def share_of_benchmarks(difference: float, sd: float) -> float:
    """Share of benchmarks on which a normal difference with this mean and SD is negative.

    Examples
    --------
    >>> round(share_of_benchmarks(-1.0, 1.0), 3), share_of_benchmarks(-0.1, 0.0)
    (0.841, 1.0)
    """
    if sd > 0:
        return float(special.ndtr(-difference / sd))
    return float(difference < 0)
