"""Failed runs: what they count, how often which algorithm failed, and what the verdict owes to the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest.bench.failures.failure_rates import failure_rates
from lmemtest.plots import failure_rates_plot
from lmemtest.report.document import Block, Bullets, Fold, Section, Strong, TableBlock, paragraph
from lmemtest.report.figures import figure

if TYPE_CHECKING:
    from lmemtest.report.analysis import Analysis

TITLE = "Failed runs"
MOST_RATES = 30  # algorithms in the figure and in the sentences


def failures_section(analysis: Analysis) -> Section | None:
    """What was done with failed runs; None where none failed."""
    done, found = analysis.runs.failures, analysis.sensitivity
    if done is None or not done.n_failed:
        return None
    blocks: list[Block] = [paragraph(Strong("Policy."), f" {done.note}{_own_model(analysis)}")]
    if found is not None:
        first, *others = found.sentences()
        blocks += [paragraph(first), Bullets(tuple((text,) for text in others)), TableBlock(found.to_table())]
    else:
        blocks.append(paragraph("No other policy could be applied, so how far the verdict depends on it is not known."))
    rates = failure_rates(analysis.runs, alpha=analysis.alpha, rng=0)
    said = rates.sentences()
    blocks.append(paragraph(" ".join(said[:2])))
    table = TableBlock(rates.to_table())
    if rates.table["algorithm"].nunique() > MOST_RATES:
        return Section("failures", TITLE, (*blocks, Fold("How often each algorithm fails", (table,))))
    drawn = figure(
        lambda: failure_rates_plot(rates),
        alt=said[0],
        caption=("Share of runs that failed, with intervals for further runs and for further benchmarks.",),
    )
    return Section("failures", TITLE, (*blocks, drawn, Fold("How often each algorithm fails", (table,))))


def _own_model(analysis: Analysis) -> str:
    return " The policies are compared by the recommended model, not by that of the report." * analysis.own_formula
