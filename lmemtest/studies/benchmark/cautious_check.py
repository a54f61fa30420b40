"""The comparison that needs no model: one number per benchmark, t-tests with benchmarks - 1 degrees of freedom."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lmemtest._result import Result, result
from lmemtest._rounding import below
from lmemtest.inference.distributions.student import two_sided_p
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.words import format_level

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.studies.benchmark.observed_advantages import ObservedAdvantages


@result
class CautiousCheck(Result):
    """Paired t-tests of one algorithm against each other over the means of the benchmarks.

    Attributes
    ----------
    leader : str
        The algorithm that is compared with each other one.
    table : pandas.DataFrame
        One row per other algorithm: ``algorithm``, ``n_benchmarks`` (on which both ran), ``difference`` (leader -
        algorithm), ``se``, ``df``, ``t_ratio``, ``p_value`` (Holm-adjusted; NaN with fewer than two benchmarks).
    """

    formats = {"t": ".2f", "p": "p"}

    leader: str
    table: pd.DataFrame

    def beaten(self, alpha: float) -> list[str]:
        """Algorithms that differ from the leader at this level."""
        return self.table["algorithm"][below(self.table["p_value"], alpha)].tolist()

    @property
    def title(self) -> str:
        """One line above the table."""
        return "A cautious check over benchmark means"

    @property
    def facts(self) -> tuple[str, ...]:
        """How the tests were made."""
        return (
            f"Paired t-tests of {self.leader} against each other algorithm, over one mean per benchmark and "
            "algorithm; p-values adjusted by Holm's method.",
        )

    def shown(self) -> pd.DataFrame:
        """The tests, with columns as a reader names them."""
        frame = self.to_frame()
        frame.columns = ["compared with", "benchmarks", f"{self.leader} − other", "SE", "df", "t", "p"]
        return frame


def cautious_check(effects: ObservedAdvantages, leader: str) -> CautiousCheck:
    """Compare one algorithm with each other one over the means of the benchmarks, from their observed means.

    Differences are taken within instances, averaged to one number per benchmark, and tested against zero with one
    degree of freedom less than benchmarks. This is valid whatever the variation within benchmarks, if differences are
    about normal between them; with few benchmarks it finds large differences only.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.Runs({"tool": ["A", "B"] * 3, "task": list("uuvvww"), "loss": [1., 2, 3, 5, 4, 7]},
    ...                score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> from lmemtest.studies.benchmark.observed_advantages import observed_advantages
    >>> check = cautious_check(observed_advantages(lt.fit_lmm("loss ~ tool + (1|task)", runs), runs), "A")
    >>> check.to_frame()[["algorithm", "difference", "df", "t_ratio"]].round(3).to_dict("list")
    {'algorithm': ['B'], 'difference': [-2.0], 'df': [2], 't_ratio': [-3.464]}
    """
    import pandas as pd

    means = effects.to_frame()
    means["algorithm"] = means["algorithm"].map(format_level)
    wide = means.pivot(index="benchmark", columns="algorithm", values="mean")
    benchmark = wide.index.map(effects.benchmark_of)
    rows = []
    for other in [name for name in effects.wins if name != leader]:
        gaps = (wide[leader] - wide[other]).dropna()
        gaps = gaps.groupby(benchmark[wide.index.isin(gaps.index)]).mean()
        n, mean, se, t = len(gaps), float(gaps.mean()), math.nan, math.nan
        if n > 1:
            se = float(gaps.std(ddof=1) / np.sqrt(n))
            t = mean / se if se > 0 else float(np.copysign(np.inf, mean)) if mean else 0.0
        rows.append((other, n, mean, se, max(n - 1, 0), t))
    table = pd.DataFrame(rows, columns=["algorithm", "n_benchmarks", "difference", "se", "df", "t_ratio"])
    raw = two_sided_p(table["t_ratio"].to_numpy(), np.maximum(table["df"].to_numpy(dtype=float), 1.0))
    return CautiousCheck(leader=leader, table=table.assign(p_value=adjust_raw(raw, "holm", len(table))))
