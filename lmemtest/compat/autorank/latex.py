"""The table and the report in LaTeX, everything escaped."""

from __future__ import annotations

from typing import Any

import numpy as np

from lmemtest.compat.autorank.decisions import distinct, is_significant
from lmemtest.compat.autorank.report import report_text
from lmemtest.compat.autorank.result import RankResult, check, check_result
from lmemtest.core.rounding import written
from lmemtest.core.tex import tex_text

EFFECT_SYMBOLS = {"cohen_d": "$d$", "cliff_delta": r"$\delta$", "akinshin_gamma": r"$\gamma$"}
NONE = "-"
# Columns of rankdf with their heads, and what these stand for.
CENTRES = {
    "meanrank": ("MR", "mean rank, 1 is best"),
    "mean": ("M", "mean"),
    "median": ("MED", "median"),
    "std": ("SD", "standard deviation"),
    "mad": ("MAD", "median absolute deviation"),
}
POSTERIOR = {"p_equal": r"$P(\textit{equal})$", "p_smaller": r"$P(\textit{smaller})$", "decision": "Decision"}
SUFFIXES = {"best": {"": ""}, "above": {"_above": ""}, "both": {"": " (best)", "_above": " (above)"}}


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
    check(effect_size_relation=effect_size_relation, posterior_relation=posterior_relation)
    check(decimal_places=decimal_places)
    table, decimals, columns, meanings = result.rankdf, int(decimal_places), dict[str, list[Any]](), []
    for name, (head, meaning) in CENTRES.items():
        if name in table.columns and not (name == "meanrank" and result.posthoc == "tukeyhsd"):
            columns[head] = table[name].tolist()
            meanings.append(f"{head}: {meaning}")
    if {"ci_lower", "ci_upper"} <= set(table.columns):
        ends = zip(table["ci_lower"], table["ci_upper"], strict=True)
        columns["CI"] = [f"[{_cell(low, decimals)}, {_cell(high, decimals)}]" for low, high in ends]
        meanings.append("CI: interval")
    effects = {"effect_size": EFFECT_SYMBOLS.get(result.effect_size or "", "effect size"), "magnitude": "Magnitude"}
    for heads, relation in ((effects, effect_size_relation), (POSTERIOR, posterior_relation)):
        for suffix, row in SUFFIXES[relation].items() if heads is POSTERIOR or _has_effects(result) else ():
            beside = {name: f"{name}{suffix}" for name in heads if f"{name}{suffix}" in table.columns}
            columns |= {f"{heads[name]}{row}": table[column].tolist() for name, column in beside.items()}
    cells = [[_cell(value, decimals) for value in values] for values in columns.values()]
    numeric = ["r" if all(map(_is_number, values)) else "l" for values in columns.values()]
    names = [tex_text(name) for name in distinct(table.index)]
    return "\n".join(
        [
            r"\begin{table}[h]",
            r"\centering",
            rf"\begin{{tabular}}{{l{''.join(numeric)}}}",
            r"\toprule",
            " & ".join(["{}", *columns]) + r" \\",
            r"\midrule",
            *(" & ".join(row) + r" \\" for row in zip(names, *cells, strict=True)),
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{Summary of populations ({'; '.join(meanings)})}}",
            rf"\label{{{'tbl:stat_results' if label is None else label}}}",
            r"\end{table}",
        ]
    )


def _has_effects(result: RankResult) -> bool:
    """Whether there is a difference whose size is of interest."""
    if result.omnibus == "bayes":
        return "decision" in result.rankdf and bool(result.rankdf["decision"].isin(["smaller", "larger"]).any())
    return is_significant(result)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


def _cell(value: Any, decimals: int) -> str:
    if not _is_number(value):
        return NONE if value is None or value == "NA" else str(value)  # brackets, or one of our words
    if np.isnan(value):
        return NONE
    if np.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    return tex_text(written(float(value), f".{decimals}f"), numeric=True)


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
    text = report_text(result, decimal_places=decimal_places)
    parts = [
        "\\section{Results}\n" rf"\label{{sec:{prefix}results}}",
        "\n".join(map(tex_text, text.split("\n"))),
        latex_table_text(result, decimal_places=decimal_places, label=f"tbl:{prefix}stat_results"),
    ]
    if figure is not None:
        lines = [
            r"\begin{figure}[h]",
            r"\centering",
            rf"\includegraphics[width=\linewidth]{{{figure}}}",
            rf"\caption{{{_figure_caption(result)}}}",
            rf"\label{{fig:{prefix}stats_fig}}",
            r"\end{figure}",
        ]
        parts.append("\n".join(lines))
    if complete_document:
        head = [r"\documentclass{article}", "\\usepackage{graphicx}\n\\usepackage{booktabs}", r"\begin{document}"]
        parts = [*head, *parts, r"\end{document}"]
    return "\n\n".join(parts)


def _figure_caption(result: RankResult) -> str:
    if result.posthoc == "tukeyhsd":
        return "Mean values with comparison intervals (Tukey's HSD): two that do not overlap differ significantly."
    if result.omnibus == "ttest":
        return "Mean values with their confidence intervals."
    return "Critical-difference diagram: differences of populations on a common bar are not significant."
