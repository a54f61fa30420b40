"""Where the variation of the scores comes from: variance components as shares and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest.errors import UnknownColumnError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

DISTINCT_NAMES = {
    "benchmark": "levels of the {instance}s (the same for all algorithms)",
    "interaction": "advantages of algorithms that change from {instance} to {instance}",
    "seed": "luck that all runs with one seed share",
    "run": "one run against another of the same algorithm on the same {instance}",
    "budget": "the course over the budget",
    "other": "groups of {group}",
    "residual": "what is left: {left}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One source of variation.

    Attributes
    ----------
    label : str
        The term of the formula, or ``"Residual"``.
    kind : str
        What its groups are: benchmark, interaction, seed, run, budget, other, residual.
    meaning : str
        In words.
    variance : float
        Its contribution to the variance of a row, in squared units of the response.
    share : float
        Of the sum of all contributions.
    """

    label: str
    kind: str
    meaning: str
    variance: float
    share: float

    @property
    def sd(self) -> float:
        """Square root of the variance."""
        return float(np.sqrt(self.variance))


def variance_components(fit: LmmFit, runs: Runs) -> tuple[Component, ...]:
    """Sources of variation of a fit with their shares, in the order of the formula, the residual last.

    Parameters
    ----------
    fit : LmmFit
    runs : Runs
        Tells what the groups are.

    Returns
    -------
    tuple of Component
        A term with slopes contributes the mean over the rows of ``basis' Sigma basis``.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.Runs({"tool": ["A", "A", "B", "B"] * 2, "task": list("wwwwxxxx"),
    ...                 "loss": [1., 2, 3, 4, 5, 7, 6, 6]},
    ...                score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> [(c.kind, round(c.share, 2)) for c in variance_components(lt.fit_lmm("loss ~ tool + (1|task)", runs), runs)]
    [('benchmark', 0.85), ('residual', 0.15)]
    """
    rows = fit.cells.n
    found = []
    for term, bar, S in zip(fit.design.random, fit.design.parsed.bars, fit.covariances, strict=True):
        per_cell = np.einsum("nk,kl,nl->n", term.basis, S, term.basis)
        found.append((term.label, _kind(set(bar.groups), runs), term.group, float(per_cell @ rows / rows.sum())))
    found.append(("Residual", "residual", "", fit.scale))
    total = sum(variance for *_, variance in found)
    kinds = {kind for _, kind, _, _ in found}
    return tuple(
        Component(
            label=label, kind=kind, meaning=_meaning(kind, group, kinds, runs), variance=variance,
            share=variance / total,
        )
        for label, kind, group, variance in found
    )  # fmt: skip


def _kind(groups: set[str], runs: Runs) -> str:
    instance = set(runs.instance)
    if runs.budget in groups:
        return "budget"
    if runs.seed in groups:
        return "run" if runs.algorithm in groups else "seed"
    if runs.algorithm in groups and groups - {runs.algorithm} and groups <= instance | {runs.algorithm}:
        return "interaction"
    return "benchmark" if groups and groups <= instance else "other"


def _meaning(kind: str, group: str, kinds: set[str], runs: Runs) -> str:
    instance = "instance" if runs.metafeatures else "benchmark"
    return DISTINCT_NAMES[kind].format(instance=instance, group=group, left=_left(kinds, runs))


def _left(kinds: set[str], runs: Runs) -> str:
    sources = []
    if runs.budget is not None and "budget" not in kinds:
        sources.append("differences between budgets within a run")
    if runs.seed is not None and "run" not in kinds:
        sources.append("chance between runs")
    if "interaction" not in kinds and runs.instance:
        sources.append("advantages that change between benchmarks")
    return ", ".join(sources) or "chance between rows of the same run"


def difference_sd(fit: LmmFit, runs: Runs, left: Any, right: Any) -> float:
    """Standard deviation over benchmarks of the true difference of two algorithms.

    Parameters
    ----------
    fit : LmmFit
    runs : Runs
    left, right
        Levels of the algorithm.

    Returns
    -------
    float
        NaN if the model lets no difference change between benchmarks.
    """
    import pandas as pd

    known = {runs.algorithm, *runs.instance}
    first = {name: fit.cells.frame[name].iloc[0] for name in runs.instance if name in fit.cells.frame}
    pair = pd.DataFrame({runs.algorithm: [left, right], **first})
    total, varies = 0.0, False
    for index, (bar, S) in enumerate(zip(fit.design.parsed.bars, fit.covariances, strict=True)):
        if not set(bar.groups) <= known or not set(bar.groups) & set(runs.instance):
            continue
        try:
            basis, _ = fit.design.random_rows(index, pair)
        except UnknownColumnError:
            continue
        if runs.algorithm in bar.groups:
            total += float(basis[0] @ S @ basis[0] + basis[1] @ S @ basis[1])
            varies = True
        elif not np.array_equal(basis[0], basis[1]):
            gap = basis[0] - basis[1]
            total += float(gap @ S @ gap)
            varies = True
    return float(np.sqrt(total)) if varies else float("nan")


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


def components_frame(components: tuple[Component, ...]) -> pd.DataFrame:
    """One row per component: ``term``, ``meaning``, ``variance``, ``sd``, ``share``."""
    import pandas as pd

    rows = [(c.label, c.meaning, c.variance, c.sd, c.share) for c in components]
    return pd.DataFrame(rows, columns=["term", "meaning", "variance", "sd", "share"])
