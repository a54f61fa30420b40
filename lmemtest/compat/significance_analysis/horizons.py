"""Windows of budgets by the model of the paper, beside the comparison that counts benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from lmemtest.bench.budget.horizon_scores import RunCurves
from lmemtest.bench.budget.horizons import horizons
from lmemtest.core.threads import one_blas_thread
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs


@one_blas_thread()
def horizon_pairs(runs: Runs, budgets: Any = None, *, adjust: str | None = None) -> pd.DataFrame:
    """Compare algorithms at horizons by ``score ~ algorithm + (1|budget) + (1|benchmark)``, as the paper does.

    Parameters
    ----------
    runs : Runs
        With numeric budgets.
    budgets : sequence of number or of two numbers, optional
        Budgets, or windows ``(first, last)`` of them, as in `lmemtest.horizons`.
    adjust : str, optional
        Adjustment for the pairs of a horizon, as in `lmemtest.horizons`; by default Tukey's for the paper's model.

    Returns
    -------
    pandas.DataFrame
        ``horizon``, ``left``, ``right``, ``estimate``, ``se``, ``p_value`` (adjusted for the pairs of the horizon) by
        the recommended model, and by that of the paper ``paper_estimate``, ``paper_se``, ``paper_p_value``. The latter
        takes every row as an observation of its own: all budgets of a run, all seeds on a benchmark.

    Raises
    ------
    ArgumentError, DataError
        As `lmemtest.horizons`.

    References
    ----------
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), arXiv:2408.02533, figure 5.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS"], prior="good")
    >>> horizon_pairs(runs, [8, (16, 32)])[["horizon", "left", "right", "se", "paper_se"]].round(5)
      horizon left right       se  paper_se
    0       8   HB    RS  0.00109   0.00066
    1   16-32   HB    RS  0.00037   0.00018
    """
    found, curves, parts = horizons(runs, budgets, adjust=adjust), RunCurves.of(runs), []
    several = runs.benchmark is not None and runs.study.several_benchmarks
    for horizon, place in zip(found.horizons, curves.places(budgets)[0], strict=True):
        scores = curves.at(place)
        table = curves.rows_at(scores.budgets) if scores.exact else curves.table(scores.scores, runs.score)
        algorithm = quote_name(runs.algorithm)
        terms = [f"C({algorithm})" if table.frame.collect_schema()[runs.algorithm].is_numeric() else algorithm]
        if table.budget is not None and len(scores.budgets) > 1:
            terms.append(f"(1 | {quote_name(table.budget)})")
        if several:
            terms.append(f"(1 | {quote_name(str(runs.benchmark))})")
        fit = fit_lmm(f"{quote_name(runs.score)} ~ {' + '.join(terms)}", table)
        paper = emmeans(fit, runs.algorithm, vcov="model").pairs(adjust=adjust).to_frame()
        own = horizon.pairs.to_frame()[["left", "right", "estimate", "se", "p_value"]]
        both = pd.concat([own, paper[["estimate", "se", "p_value"]].add_prefix("paper_")], axis=1)
        parts.append(both.assign(horizon=horizon.label)[["horizon", *both.columns]])
    return pd.concat(parts, ignore_index=True)
