"""Tuning curves in a report, and as files of their own."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmemtest.core.result import csv_text
from lmemtest.core.validate import check_columns
from lmemtest.core.words import counted
from lmemtest.report.document import Block, Bullets, Fold, Section, TableBlock, paragraph
from lmemtest.report.figures import figure, stable_svg
from lmemtest.report.files import CURVES, LABELS, check_folder, write_atomically
from lmemtest.tuning.curves import TuningCurves
from lmemtest.tuning.curves import curves as tuning_curves

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.result import Answer
    from lmemtest.report.analysis import Analysis

RNG = 1  # of the rates of false labels, which the reports name
MOST_ROWS = 24  # of a table before it is folded
MOST_PAIRS = 10  # in sentences: 5 algorithms; the table has all
DOTS_PER_INCH = 150


def curves_of(trials: Any, runs: Runs) -> TuningCurves:
    """Tuning curves for a report on runs: as given, or of a table with the runs' score, algorithm and benchmark."""
    if isinstance(trials, TuningCurves):
        return trials
    if hasattr(trials, "roles"):
        return tuning_curves(trials)
    from lmemtest.core.validate import as_frame

    by = tuple(name for name in (runs.benchmark, runs.algorithm) if name is not None)
    check_columns((runs.score, *by), as_frame(trials, argument="trials").collect_schema().names(), argument="trials")
    return tuning_curves(trials, score=runs.score, direction=runs.direction, by=by)


def call_of(curves: TuningCurves) -> str:
    """The call that makes these curves."""
    options: dict[str, Any] = {
        "score": curves.score,
        "direction": curves.direction,
        "by": curves.by,
        "statistic": curves.statistic,
        "level": curves.level,
    }
    options |= {"unit": "seed", "simultaneous": curves.simultaneous} if curves.unit == "seed" else {"band": curves.band}
    roles = {name: getattr(curves, name) for name in ("cost", "seed", "budget")}
    given = {**roles, "k": curves.grid, "bounds": curves.bounds, "from_k": curves.from_k}
    options |= {name: value for name, value in given.items() if value is not None}
    options |= {"adjust": curves.adjust} if curves.adjust != "none" else {}
    if "k" in options:
        options["k"] = options["k"].tolist()
    return f"lmemtest.tuning.curves(trials, {', '.join(f'{name}={value!r}' for name, value in options.items())})"


def curves_section(analysis: Analysis) -> Section | None:
    """The tuning curves with the evidence between them; None without trials."""
    from lmemtest.plots.tuning import tuning_curves_plot

    curves = analysis.trials
    if curves is None:
        return None
    title, question, more, method = _words(curves)
    blocks: list[Block] = [
        paragraph(question),
        figure(
            lambda: tuning_curves_plot(curves),
            alt=f"{title} of {', '.join(curves.algorithms)} on {counted(len(curves.benchmarks), 'benchmark')}; see the "
            "table.",
            caption=(curves.describe() + " Grey: a limit is the end of the support and says nothing.",),
        ),
    ]
    counts = labels_of(curves)
    if counts is not None:
        found = counts.sentences()
        blocks += [Bullets(tuple((text,) for text in found))] if len(found) <= MOST_PAIRS else []
        blocks.append(_folded("Table of the evidence", TableBlock(counts.to_table())))
    blocks.append(_folded("Table of the curves", TableBlock(curves.to_table())))
    more = more if counts is None else _EVIDENCE
    blocks += [paragraph(f"{_HOW_TO_READ} {more}".rstrip()), paragraph(method)]
    return Section("tuning", title, tuple(blocks))


def _folded(title: str, block: TableBlock) -> Block:
    """A table, closed until asked for if it is long."""
    return block if len(block.table.frame) <= MOST_ROWS else Fold(title, (block,))


def labels_of(curves: TuningCurves) -> Answer | None:
    """Counts of the evidence where there are two algorithms to compare, and bands that can exclude each other."""
    if curves.unit == "seed" or len(curves.algorithms) < 2 or not 0.0 < curves.band_level < 1.0:
        return None
    return curves.labels(rng=RNG)


def headline(curves: TuningCurves) -> tuple[str, ...]:
    """The answer in a few sentences, for the terminal."""
    size = f"{counted(len(curves.algorithms), 'algorithm')} on {counted(len(curves.benchmarks), 'benchmark')}"
    first = f"{_words(curves)[0]} of {size} by {curves.score}, {curves.direction}. {curves.describe()}"
    counts = labels_of(curves)
    found = counts.sentences() if counts is not None else ()
    more = (f"... and {len(found) - MOST_PAIRS} more pairs: see {LABELS}.csv.",) if len(found) > MOST_PAIRS else ()
    return (first, *found[:MOST_PAIRS], *more, *curves.notes)


def save_curves(
    curves: TuningCurves,
    folder: str | os.PathLike[str],
    *,
    progress: Callable[[str], None] | None = None,
    escape: bool = True,
) -> tuple[Path, ...]:
    """Write the table of the curves (csv), their figure (png and svg) and the evidence between them (csv).

    The folder is made if it does not exist; files that are there are replaced, by complete ones only. Returns the
    absolute paths. With `escape`, texts that a spreadsheet program would evaluate get an apostrophe in front.
    """
    from lmemtest.plots import detached_figures
    from lmemtest.plots.tuning import tuning_curves_plot

    step = progress or (lambda _: None)
    target = check_folder(folder)
    contents: dict[str, str | bytes] = {f"{CURVES}.csv": csv_text(curves.to_frame(), escape=escape)}
    counts = labels_of(curves)
    if counts is not None:
        contents[f"{LABELS}.csv"] = csv_text(counts.comparisons, escape=escape)
    step("drawing the curves")
    with detached_figures():
        drawn = tuning_curves_plot(curves).figure.figure
    image, vector = io.BytesIO(), io.StringIO()
    drawn.savefig(image, format="png", dpi=DOTS_PER_INCH)
    drawn.savefig(vector, format="svg", metadata={"Date": None, "Creator": None})
    contents |= {f"{CURVES}.png": image.getvalue(), f"{CURVES}.svg": stable_svg(vector.getvalue())}
    step("writing")
    target.mkdir(exist_ok=True)
    paths = tuple(target / name for name in contents)
    for path, content in zip(paths, contents.values(), strict=True):
        write_atomically(path, content)
    return paths


# ---------------------------------------------------------------------------------------------------- words


# Of curves over seeds and of those over configurations: title, question, how to read them, method.
_SEEDS = (
    "Curves over seeds",
    "How good is an optimiser after each budget? The curves show a quantile over its seeds of the best score so far, "
    "with limits that need no assumption about the scores.",
    "Whether optimisers differ is a question for the mixed model, not for the overlap of two bands.",
    "Method: at each budget the best scores so far of the seeds are independent draws of one distribution, whose "
    "quantile lies between two of their order statistics with a binomial probability (Thompson 1936, "
    "doi:10.1214/aoms/1177732502). Bands over configurations do not apply: an adaptive optimiser learns from its "
    "scores.",
)
_CONFIGURATIONS = (
    "Tuning curves",
    "How good is an algorithm after tuning? The curves show the best score of k random configurations, for each k, "
    "because a ranking at one tuning budget can reverse at another.",
    "",
    "Method: a simultaneous confidence band for the distribution function of one score gives limits for the best of k, "
    "exact for continuous scores and conservative for ties (Lourie, Cho & He 2024, "
    "doi:10.18653/v1/2024.naacl-long.189). It needs independent scores, as those of random search.",
)
_EVIDENCE = (
    "Evidence is weak if one band excludes the other's estimate, fair if both do, strong if the bands are disjoint, "
    f"over at least half of the budgets that count; rates of false labels are simulated (rng={RNG}). No evidence is "
    "not equality."
)
_HOW_TO_READ = (
    "How to read it: compare curves at one budget. Where a band is grey, the data do not bound the curve on both "
    "sides, whatever the estimate looks like."
)


def _words(curves: TuningCurves) -> tuple[str, str, str, str]:
    return _SEEDS if curves.unit == "seed" else _CONFIGURATIONS
