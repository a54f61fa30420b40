"""Tuning curves in a report, and as files of their own."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmemtest.core.result import csv_text
from lmemtest.core.validate import as_frame, check_columns
from lmemtest.core.words import counted
from lmemtest.report.document import Block, Section, bullets, closed_if_long, figure, stable_svg
from lmemtest.report.files import CURVES, LABELS, check_folder, write_atomically
from lmemtest.report.prose import texts

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.result import Answer
    from lmemtest.report.analysis import Analysis
    from lmemtest.tuning.curves import TuningCurves

RNG = 1  # of the rates of false labels, which the reports name
MOST_ROWS = 24  # of a table before it is folded
MOST_PAIRS = 10  # in sentences: 5 algorithms; the table has all
DOTS_PER_INCH = 150


def curves_of(trials: Any, runs: Runs) -> TuningCurves:
    """Tuning curves for a report on runs: as given, or of a table with the runs' score, algorithm and benchmark."""
    from lmemtest.tuning.curves import TuningCurves
    from lmemtest.tuning.curves import curves as tuning_curves

    if isinstance(trials, TuningCurves):
        return trials
    if hasattr(trials, "roles"):
        return tuning_curves(trials)
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
    arguments = {**roles, "k": curves.grid, "bounds": curves.bounds, "from_k": curves.from_k}
    options |= {name: value for name, value in arguments.items() if value is not None}
    options |= {"adjust": curves.adjust} if curves.adjust != "none" else {}
    if "k" in options:
        options["k"] = options["k"].tolist()
    return f"lmemtest.tuning.curves(trials, {', '.join(f'{name}={value!r}' for name, value in options.items())})"


def curves_section(analysis: Analysis) -> Section | None:
    """The tuning curves with the evidence between them; None without trials."""
    curves = analysis.trials
    if curves is None:
        return None
    title, counts = _title(curves), labels_of(curves)
    question, how_to_read, method = texts(
        "sections.tuning", over_seeds=curves.unit == "seed", labels=counts is not None, rng=RNG
    )
    blocks: list[Block] = [
        question,
        figure(
            curves.plot,
            alt=f"{title} of {', '.join(curves.algorithms)} on {counted(len(curves.benchmarks), 'benchmark')}; see the "
            "table.",
            caption=(curves.describe() + " Grey: a limit is the end of the support and says nothing.",),
        ),
    ]
    if counts is not None:
        sentences = counts.sentences()
        blocks += [bullets(sentences)] if len(sentences) <= MOST_PAIRS else []
        blocks.append(closed_if_long("Table of the evidence", counts.to_table(), MOST_ROWS))
    blocks.append(closed_if_long("Table of the curves", curves.to_table(), MOST_ROWS))
    gist = (f"{counted(len(curves.algorithms), 'curve')} on {counted(len(curves.benchmarks), 'benchmark')}.",)
    return Section("tuning", title, (*blocks, how_to_read, method), summary=gist)


def _title(curves: TuningCurves) -> str:
    return "Curves over seeds" if curves.unit == "seed" else "Tuning curves"


def labels_of(curves: TuningCurves) -> Answer | None:
    """Counts of the evidence where there are two algorithms to compare, and bands that can exclude each other."""
    if curves.unit == "seed" or len(curves.algorithms) < 2 or not 0.0 < curves.band_level < 1.0:
        return None
    return curves.labels(rng=RNG)


def headline(curves: TuningCurves) -> tuple[str, ...]:
    """The answer in a few sentences, for the terminal."""
    size = f"{counted(len(curves.algorithms), 'algorithm')} on {counted(len(curves.benchmarks), 'benchmark')}"
    first = f"{_title(curves)} of {size} by {curves.score}, {curves.direction}. {curves.describe()}"
    counts = labels_of(curves)
    pairs = counts.sentences() if counts is not None else ()
    more = (f"... and {len(pairs) - MOST_PAIRS} more pairs: see {LABELS}.csv.",) if len(pairs) > MOST_PAIRS else ()
    return (first, *pairs[:MOST_PAIRS], *more, *curves.notes)


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
