"""The table and the report in LaTeX, everything escaped."""

from __future__ import annotations

from typing import Any

import numpy as np

from lmemtest.compat.autorank.checks import check_decimal_places, check_relation, check_result
from lmemtest.compat.autorank.decisions import distinct
from lmemtest.compat.autorank.report import report_text
from lmemtest.compat.autorank.result import RankResult
from lmemtest.core.rounding import below, written
from lmemtest.core.table import latex_text

EFFECT_SYMBOLS = {"cohen_d": "$d$", "cliff_delta": r"$\delta$", "akinshin_gamma": r"$\gamma$"}
NONE = "-"
# Columns of rankdf with their heads; an interval takes two of them.
CENTRES = {"meanrank": "MR", "mean": "M", "median": "MED", "std": "SD", "mad": "MAD"}
BESIDE = {  # another row
    "effect_size": "effect size",
    "magnitude": "Magnitude",
    "p_equal": r"$P(\textit{equal})$",
    "p_smaller": r"$P(\textit{smaller})$",
    "decision": "Decision",
}
EFFECTS = ("effect_size", "magnitude")
SUFFIXES = {"best": ("",), "above": ("_above",), "both": ("", "_above")}
ABBREVIATIONS = {
    "MR": "mean rank, 1 is best",
    "M": "mean",
    "SD": "standard deviation",
    "MED": "median",
    "MAD": "median absolute deviation",
    "CI": "interval",
}


def latex_table_text(
    result: RankResult,
    *,
    decimal_places: int = 3,
    label: str | None = None,
    effect_size_relation: str = "best",
    posterior_relation: str = "best",
) -> str:
    """The table that `latex_table` prints."""
    check_result(result)
    check_relation(effect_size_relation, "effect_size_relation")
    check_relation(posterior_relation, "posterior_relation")
    decimals = check_decimal_places(decimal_places)
    columns = _columns(result, effect_size_relation, posterior_relation, decimals)
    heads = [head for head, _ in columns]
    cells = [[_cell(value, decimals) for value in values] for _, values in columns]
    numeric = ["r" if all(_is_number(value) for value in values) else "l" for _, values in columns]
    names = [latex_text(name) for name in distinct(result.rankdf.index)]
    rows = [" & ".join(row) + r" \\" for row in zip(names, *cells, strict=True)]
    return "\n".join(
        [
            r"\begin{table}[h]",
            r"\centering",
            rf"\begin{{tabular}}{{l{''.join(numeric)}}}",
            r"\toprule",
            " & ".join(["{}", *heads]) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{_caption(heads)}}}",
            rf"\label{{{'tbl:stat_results' if label is None else label}}}",
            r"\end{table}",
        ]
    )


def _columns(result: RankResult, effects: str, posteriors: str, decimals: int) -> list[tuple[str, list[Any]]]:
    """Heads and values, in the order of the table."""
    table = result.rankdf
    columns = [
        (head, table[name].tolist())
        for name, head in CENTRES.items()
        if name in table.columns and not (name == "meanrank" and result.posthoc == "tukeyhsd")
    ]
    if {"ci_lower", "ci_upper"} <= set(table.columns):
        ends = zip(table["ci_lower"], table["ci_upper"], strict=True)
        columns.append(("CI", [f"[{_cell(low, decimals)}, {_cell(high, decimals)}]" for low, high in ends]))
    heads = BESIDE | {"effect_size": EFFECT_SYMBOLS.get(result.effect_size or "", BESIDE["effect_size"])}
    for names, relation in ((EFFECTS, effects), (tuple(BESIDE)[2:], posteriors)):
        if names == EFFECTS and not _is_significant(result):
            continue
        for suffix in SUFFIXES[relation]:
            said = "" if relation != "both" else " (above)" if suffix else " (best)"
            columns += [
                (f"{heads[name]}{said}", table[f"{name}{suffix}"].tolist())
                for name in names
                if f"{name}{suffix}" in table.columns
            ]
    return columns


def _is_significant(result: RankResult) -> bool:
    """Whether there is a difference whose size is of interest."""
    if result.omnibus == "bayes":
        return "decision" in result.rankdf and bool(result.rankdf["decision"].isin(["smaller", "larger"]).any())
    return result.pvalue is not None and bool(below(result.pvalue, result.alpha))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


def _cell(value: Any, decimals: int) -> str:
    if not _is_number(value):
        return NONE if value is None or value == "NA" else str(value)  # brackets, or one of our words
    if np.isnan(value):
        return NONE
    if np.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    return latex_text(written(float(value), f".{decimals}f"), numeric=True)


def _caption(heads: list[str]) -> str:
    said = [f"{head}: {ABBREVIATIONS[head]}" for head in heads if head in ABBREVIATIONS]
    return f"Summary of populations ({'; '.join(said)})"


def latex_report_text(
    result: RankResult,
    *,
    decimal_places: int = 3,
    prefix: str = "",
    figure: str | None = None,
    complete_document: bool = True,
) -> str:
    """The report that `latex_report` prints; `figure` is the path of its figure, None for none."""
    check_result(result)
    text = "\n".join(latex_text(line) for line in report_text(result, decimal_places=decimal_places).split("\n"))
    parts = [
        rf"\section{{Results}}{chr(10)}\label{{sec:{prefix}results}}",
        text,
        latex_table_text(result, decimal_places=decimal_places, label=f"tbl:{prefix}stat_results"),
    ]
    if figure is not None:
        parts.append(
            "\n".join(
                [
                    r"\begin{figure}[h]",
                    r"\centering",
                    rf"\includegraphics[width=\linewidth]{{{figure}}}",
                    rf"\caption{{{_figure_caption(result)}}}",
                    rf"\label{{fig:{prefix}stats_fig}}",
                    r"\end{figure}",
                ]
            )
        )
    if complete_document:
        top = [
            r"\documentclass{article}",
            r"\usepackage{graphicx}" + "\n" + r"\usepackage{booktabs}",
            r"\begin{document}",
        ]
        parts = [*top, *parts, r"\end{document}"]
    return "\n\n".join(parts)


def _figure_caption(result: RankResult) -> str:
    if result.posthoc == "tukeyhsd":
        return "Mean values with comparison intervals (Tukey's HSD): two that do not overlap differ significantly."
    if result.omnibus == "ttest":
        return "Mean values with their confidence intervals."
    return "Critical-difference diagram: differences of populations on a common bar are not significant."
