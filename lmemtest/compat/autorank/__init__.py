"""The functions of Autorank 1.3, with correct numbers.

A script written for Autorank (Herbold 2020, doi:10.21105/joss.02173) runs when its import line says
``from lmemtest.compat.autorank import ...``: names, arguments, defaults, columns and fields are the same.
`docs/developers/moving.md` lists each difference. Importing this loads neither numpy nor matplotlib; the work is in
the modules that the functions call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmemtest.compat.autorank.result import RankResult, check, check_maps, check_plot_order, check_result

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "RankResult",
    "autorank",
    "create_report",
    "latex_report",
    "latex_table",
    "plot_posterior_maps",
    "plot_stats",
]


def autorank(
    data: pd.DataFrame,
    alpha: float = 0.05,
    verbose: bool = False,
    order: str = "descending",
    approach: str = "frequentist",
    rope: float = 0.1,
    rope_mode: str = "effsize",
    nsamples: int = 50000,
    effect_size: str | None = None,
    force_mode: str | None = None,
    random_state: int | np.random.Generator | None = None,
    plot_order: list[Any] | None = None,
) -> RankResult:
    """Rank populations that were measured on the same samples, and decide which of them differ.

    Parameters
    ----------
    data : pandas.DataFrame
        A column per population and a row per paired sample, at least 2 and 5 of them, without missing cells. Rows must
        be independent of each other: one row per benchmark, not one per seed of the same few benchmarks.
    alpha : float in (0, 1)
        Family-wise significance level.
    verbose : bool
        Print what is tested, and what comes of it.
    order : {"descending", "ascending"}
        Whether a large or a small value is good.
    approach : {"frequentist", "bayesian", "lmem"}
        Classical tests, the Bayesian signed-rank test, or, which Autorank does not have, the marginal means of the
        recommended mixed model. Rows that have the same label in the index, or in the first of its two levels, are runs
        of one benchmark for "lmem" (the second level is the seed); the other two take all rows for independent.
    rope : float >= 0
        Bayesian: differences that do not matter, as a share of the pooled spread of the pair, or absolute.
    rope_mode : {"effsize", "absolute"}
    nsamples : int >= 1
        Draws from each posterior.
    effect_size : {"cohen_d", "cliff_delta", "akinshin_gamma"}, optional
        By default the first where means are compared, else the last.
    force_mode : {"parametric", "nonparametric"}, optional
        Means, or ranks and medians, whatever the tests of normality and variances say.
    random_state : int or numpy.random.Generator, optional
        Of the draws.
    plot_order : list, optional
        Columns in the order in which intervals are drawn.

    Returns
    -------
    RankResult

    Raises
    ------
    TypeError
        If an argument has another type.
    ValueError
        If an argument has a value that is not allowed, or a cell of the data is missing or infinite.

    Notes
    -----
    Two populations: paired t-test if Shapiro-Wilk tests at alpha / k reject normality for neither, else the two-sided
    Wilcoxon signed-rank test. More: repeated-measures ANOVA and Tukey's HSD with its error if Bartlett's test does not
    reject equal variances either, else Friedman's test and Nemenyi's. Intervals of means are Student's, those of
    medians order statistics with exact coverage, 1 - alpha for all of them together; an infinite limit says that the
    rows are too few for the level. Intervals beside Tukey's HSD are comparison intervals: two that do not overlap
    differ significantly.

    References
    ----------
    Herbold (2020), Journal of Open Source Software 5(48), 2173, doi:10.21105/joss.02173;
    Demšar (2006), Journal of Machine Learning Research 7, 1-30

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.compat.autorank import autorank
    >>> data = pd.DataFrame({"A": [9, 8, 7, 9, 6, 7], "B": [8, 7, 7, 8, 5, 6], "C": [5, 6, 4, 6, 3, 4]}) / 10
    >>> result = autorank(data, force_mode="nonparametric")
    >>> result.omnibus, result.posthoc, round(result.cd, 3)
    ('friedman', 'nemenyi', 1.353)
    >>> result.rankdf["meanrank"].round(2).to_dict()
    {'A': 1.08, 'B': 1.92, 'C': 3.0}
    """
    from lmemtest.compat.autorank import _util

    table = _util.checked(data)
    check(alpha=alpha, verbose=verbose, order=order, approach=approach, rope=rope, rope_mode=rope_mode)
    check(nsamples=nsamples, effect_size=effect_size, force_mode=force_mode)
    if plot_order is not None:
        check_plot_order(plot_order, list(data.columns))
    alpha, each = float(alpha), float(alpha) / data.shape[1]
    normal, p_values = _util.test_normality(table, each, verbose)
    comparison: _util.ComparisonResult | _util.BayesResult
    more: dict[str, Any]
    if approach == "bayesian":
        comparison = _util.rank_bayesian(
            table, alpha, verbose, normal, order, rope, rope_mode, nsamples, effect_size, random_state, force_mode
        )
        more = {"omnibus": "bayes", "posthoc": "bayes", "rope": rope, "rope_mode": rope_mode}
    elif approach == "lmem":
        comparison, decisions = _util.rank_lmem(table, data.index, alpha, order, effect_size)
        normal, more = False, {"decision_matrix": decisions}
    else:
        more = _util.homoscedastic(table, alpha, verbose, normal)
        options = (alpha, verbose, normal, more["homoscedastic"], order, effect_size, force_mode)
        comparison = _util.rank_frequentist(table, *options)
    absent = dict.fromkeys(("pvalue", "cd", "homoscedastic", "pval_homogeneity", "homogeneity_test"))
    fields: dict[str, Any] = absent | comparison._asdict() | more
    return RankResult(
        pvals_shapiro=[p_values[i] for i in fields.pop("reorder_pos")],
        all_normal=normal,
        alpha=alpha,
        alpha_normality=each,
        num_samples=len(data),
        force_mode=force_mode,
        plot_order=plot_order,
        **fields,
    )


def plot_stats(
    result: RankResult, *, allow_insignificant: bool = False, ax: Axes | None = None, width: float | None = None
) -> Axes:
    """Draw which populations differ.

    Parameters
    ----------
    result : RankResult
    allow_insignificant : bool
        Draw a result whose test of all populations does not reject, too.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    width : float, optional
        Inches of the new figure; not used with `ax`.

    Returns
    -------
    matplotlib.axes.Axes
        After a t-test or Tukey's HSD means with their intervals, else a critical-difference diagram.

    Raises
    ------
    TypeError
        If `result` is something else.
    ValueError
        If the result is Bayesian, or not significant and `allow_insignificant` is False.

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.compat.autorank import autorank, plot_stats
    >>> data = pd.DataFrame({"A": [9, 8, 7, 9, 6, 7], "B": [8, 7, 7, 8, 5, 6], "C": [5, 6, 4, 6, 3, 4]}) / 10
    >>> ax = plot_stats(autorank(data, force_mode="nonparametric"))
    """
    check_result(result)
    from lmemtest.compat.autorank import decisions

    return decisions.plot_stats(result, allow_insignificant=allow_insignificant, ax=ax, width=width)


def plot_posterior_maps(
    result: RankResult,
    *,
    width: float | None = None,
    cmaps: list[Any] | None = None,
    annot_colors: list[Any] | None = None,
    axes: list[Axes] | None = None,
) -> list[Axes]:
    """Draw the posterior probabilities of all pairs as three maps, and the decisions as a fourth.

    Parameters
    ----------
    result : RankResult
        Of ``approach="bayesian"``.
    width : float, optional
        Inches of the new figure, which is square; 10 by default, not used with `axes`.
    cmaps : list of 4 colour maps, optional
        For smaller, equivalent, larger and the decisions.
    annot_colors : list of 4 pairs of colours, optional
        Of the numbers on light and on dark cells.
    axes : list of 4 Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    list of 4 Axes

    Raises
    ------
    TypeError
        If an argument has another type.
    ValueError
        If a list has another length, `width` is not positive, or the result is not Bayesian.

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.compat.autorank import autorank, plot_posterior_maps
    >>> data = pd.DataFrame({"A": [9, 8, 7, 9, 6, 7], "B": [8, 7, 7, 8, 5, 6], "C": [5, 6, 4, 6, 3, 4]}) / 10
    >>> maps = plot_posterior_maps(autorank(data, approach="bayesian", nsamples=1000, random_state=0))
    """
    check_result(result)
    check(width=width)
    check_maps(cmaps=cmaps, annot_colors=annot_colors, axes=axes)
    from lmemtest.compat.autorank import decisions

    inches = 10.0 if width is None else float(width)
    return decisions.posterior_maps(result, width=inches, cmaps=cmaps, annot_colors=annot_colors, axes=axes)


def create_report(result: RankResult, *, decimal_places: int = 3) -> None:
    """Print a report of the analysis; `report.report_text` returns it.

    Parameters
    ----------
    result : RankResult
    decimal_places : int
        Of its numbers.

    Raises
    ------
    TypeError
        If `result` is something else.

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.compat.autorank import autorank, create_report
    >>> data = pd.DataFrame({"A": [9, 8, 7, 9, 6, 7], "B": [8, 7, 7, 8, 5, 6]}) / 10
    >>> create_report(autorank(data), decimal_places=2)
    2 populations were compared on 6 paired samples. The family-wise significance level is alpha=0.05.
    No Shapiro-Wilk test at the level 0.025 (alpha divided by the number of populations) rejects normality (smallest
    p=0.42).
    The mean values are compared by a paired t-test.
    Best first, the populations are A (M=0.77 [0.61, 0.92], SD=0.12, MR=1.08) and B (M=0.68 [0.53, 0.83], SD=0.12,
    MR=1.92) (M: mean value, in brackets its interval, at least 95 % confidence for all together; SD: standard
    deviation; MR: mean rank, 1 is best).
    The paired t-test rejects the hypothesis that the mean values are equal (p<0.01).
    The mean value of A is significantly larger than that of B. Cohen's d is 0.70 (medium).
    Computed with lmemtest ...
    """
    from lmemtest.compat.autorank.report import report_text

    print(report_text(result, decimal_places=decimal_places))


def latex_table(
    result: RankResult,
    *,
    decimal_places: int = 3,
    label: str | None = None,
    effect_size_relation: str = "best",
    posterior_relation: str = "best",
) -> None:
    r"""Print `rankdf` as a LaTeX table (booktabs); `latex.latex_table_text` returns it.

    Parameters
    ----------
    result : RankResult
    decimal_places : int
    label : str, optional
        Of the table; "tbl:stat_results" by default.
    effect_size_relation, posterior_relation : {"best", "above", "both"}
        Beside which row: the first, the one above, or both.

    Raises
    ------
    TypeError
        If `result` is something else.
    ValueError
        If a relation is unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.compat.autorank import autorank, latex_table
    >>> data = pd.DataFrame({"A_1": [9, 8, 7, 9, 6, 7], "B": [8, 7, 7, 8, 5, 6]}) / 10
    >>> latex_table(autorank(data), decimal_places=2)
    \begin{table}[h]
    \centering
    \begin{tabular}{lrrrlrl}
    \toprule
    {} & MR & M & SD & CI & $d$ & Magnitude \\
    \midrule
    A\_1 & 1.08 & 0.77 & 0.12 & [0.61, 0.92] & 0.00 & negligible \\
    B & 1.92 & 0.68 & 0.12 & [0.53, 0.83] & 0.70 & medium \\
    \bottomrule
    \end{tabular}
    \caption{Summary of populations (MR: mean rank, 1 is best; M: mean; SD: standard deviation; CI: interval)}
    \label{tbl:stat_results}
    \end{table}
    """
    from lmemtest.compat.autorank.latex import latex_table_text

    relations = {"effect_size_relation": effect_size_relation, "posterior_relation": posterior_relation}
    print(latex_table_text(result, decimal_places=decimal_places, label=label, **relations))


def latex_report(
    result: RankResult,
    *,
    decimal_places: int = 3,
    prefix: str = "",
    generate_plots: bool = True,
    figure_path: str = "",
    complete_document: bool = True,
) -> None:
    r"""Print the report with its table and figure as LaTeX; `latex.latex_report_text` returns it.

    Parameters
    ----------
    result : RankResult
    decimal_places : int
    prefix : str
        Before all labels, and before the name of the figure's file.
    generate_plots : bool
        Save the figure of a significant frequentist result, and include it.
    figure_path : str
        The folder for it.
    complete_document : bool
        A whole document, or a section only.

    Raises
    ------
    TypeError
        If `result` is something else.

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.compat.autorank import autorank, latex_report
    >>> data = pd.DataFrame({"A": [9, 8, 7, 9, 6, 7], "B": [8, 7, 7, 8, 5, 6]}) / 10
    >>> latex_report(autorank(data), generate_plots=False, complete_document=False)
    \section{Results}
    \label{sec:results}
    ...
    \end{table}
    """
    check_result(result)
    from lmemtest.compat.autorank import decisions
    from lmemtest.compat.autorank.latex import latex_report_text

    figure = decisions.save(result, figure_path, prefix) if generate_plots else None
    options: dict[str, Any] = {"decimal_places": decimal_places, "complete_document": complete_document}
    print(latex_report_text(result, prefix=prefix, figure=figure, **options))
