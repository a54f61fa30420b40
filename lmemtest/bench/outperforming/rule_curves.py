"""How the decisions of each rule depend on the number of runs and on gamma."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from lmemtest.bench.outperforming.decision_rules import decision_rules
from lmemtest.core.result import Result, result
from lmemtest.core.validate import check_choice, check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.power.components import VarianceComponents

OVER = ("n_runs", "gamma")


@result
class RuleCurves(Result):
    """How often rules find A better, over the number of runs or over gamma.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per true probability, estimator, rule and value: ``probability``, ``estimator``, ``rule``, ``n_runs``,
        ``gamma``, ``rate`` of detections, ``se`` of the simulation.
    over : {"n_runs", "gamma"}
        What varies.
    n_draws : int
    notes : tuple of str
    """

    figure: ClassVar[str | None] = "rule_curves_plot"
    formats = dict.fromkeys(["rate", "se"], ".3f")

    table: pd.DataFrame
    over: str
    n_draws: int
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Over what."""
        return f"Decisions of each rule over {'the number of runs' if self.over == 'n_runs' else 'gamma'}"

    @property
    def facts(self) -> tuple[str, ...]:
        """The threshold."""
        return (
            f"{self.n_draws:,} studies per cell; single comparisons and averages ask for a difference of Phi^-1(gamma) "
            "standard deviations of a run.",
        )


def rule_curves(
    components: VarianceComponents | None = None,
    *,
    over: str = "n_runs",
    n_runs: int | Sequence[int] = (5, 10, 20, 30, 50, 100),
    gamma: float | Sequence[float] = 0.75,
    probabilities: Sequence[float] = (0.5, 0.6, 0.75, 0.9),
    alpha: float = 0.05,
    method: str = "percentile",
    n_draws: int = 2000,
    rng: int | np.random.Generator | None = None,
) -> RuleCurves:
    """How often each rule finds A better over the number of runs, or over gamma: figure I.6 of Bouthillier et al.

    Parameters
    ----------
    components : VarianceComponents, optional
        As in `decision_rules`.
    over : {"n_runs", "gamma"}
        What varies: give several of it, and one of the other.
    n_runs : int or sequence of int, >= 2
    gamma : float or sequence of float in (0.5, 1)
        Single comparisons and averages have the threshold ``Phi^-1(gamma)`` standard deviations of a run.
    probabilities : sequence of float in (0, 1)
        True probabilities that a run of A is better.
    alpha, method, n_draws, rng
        As in `decision_rules`.

    Returns
    -------
    RuleCurves

    Examples
    --------
    >>> found = rule_curves(n_runs=[10, 50], probabilities=[0.75], n_draws=500, rng=1)
    >>> cell = found.table.query("rule == 'outperforming' and estimator == 'ideal'")
    >>> cell["rate"].is_monotonic_increasing
    True
    """
    import pandas as pd

    check_choice(over, "over", OVER)
    sizes = [n_runs] if isinstance(n_runs, (int, np.integer)) else list(n_runs)
    gammas = [gamma] if isinstance(gamma, (int, float)) else list(gamma)
    fixed, name = (gammas, "gamma") if over == "n_runs" else (sizes, "n_runs")
    if len(fixed) != 1:
        raise ArgumentError(f"{name} must be one value where over={over!r}, got {len(fixed)}.")
    if not sizes or not gammas:
        raise ArgumentError(f"{'n_runs' if not sizes else 'gamma'} must hold a value at least, got none.")
    for size in sizes:
        check_positive_int(size, "n_runs", minimum=2)
    generator, parts = resolve_rng(rng), []
    for size in sizes:
        for g in gammas:
            found = decision_rules(
                components,
                n_runs=size,
                gamma=g,
                alpha=alpha,
                threshold=float(special.ndtri(g)) if 0.5 < g < 1.0 else math.nan,
                probabilities=probabilities,
                method=method,
                n_draws=n_draws,
                rng=generator,
            )
            asked = found.table[found.table["probability"].isin(list(probabilities))]
            parts.append(asked.assign(n_runs=size, gamma=g))
    columns = ["probability", "estimator", "rule", "n_runs", "gamma", "rate", "se"]
    table = pd.concat(parts)[columns].sort_values(columns[:5], kind="stable", ignore_index=True)
    return RuleCurves(table=table, over=over, n_draws=n_draws)
