r"""An analysis as the pieces of a paper: figures, tables, sentences and references, each a file that `\input` takes.

Every piece is made of the same decisions. A folder that was written before is renewed; what somebody else wrote, or
changed since, is not replaced unless this is asked for.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.core.options import ADJUSTMENT_NAMES, DDF_NAMES, ERROR_NAMES
from lmemtest.core.sanitize import logged
from lmemtest.core.table import ResultTable
from lmemtest.core.tex import tex_text
from lmemtest.core.validate import check_callable, check_flag
from lmemtest.core.words import MISSING, capitalised, confidence, format_p, rank_span
from lmemtest.errors import DesignError
from lmemtest.lmm.means.comparisons import intervals_text
from lmemtest.report import wording
from lmemtest.report.document import Text, Words, image_of, plain
from lmemtest.report.files import PAPER_FILES, PAPER_SUMS, check_paper_folder, write_together
from lmemtest.report.leaders import leaders, pictured
from lmemtest.report.methods import cited_in, limitations_section, methods_paragraph
from lmemtest.report.prose import sentence_of
from lmemtest.report.render import render_paper
from lmemtest.report.sources import bibtex

if TYPE_CHECKING:
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.report.analysis import Analysis

COLUMN_CHARACTERS = 48  # of a line in a column of a paper, in ten points
MOST_IN_PAIRS, MOST_LINES = 10, 45  # algorithms and their pairs: the most that a page holds
NAME_CHARACTERS = 22  # of a line of a name in a table of pairs
_LINE = 100


def save_paper(
    analysis: Analysis, folder: Any, *, overwrite: bool = False, progress: Callable[[str], None] | None = None
) -> tuple[Path, ...]:
    """Write the pieces of a paper into a folder; see `Analysis.save_paper`."""
    target = check_paper_folder(folder, overwrite=check_flag(overwrite, "overwrite"))
    check_callable(progress, "progress", "the name of each step")
    contents = paper_files(analysis, progress or (lambda _: None))
    sums = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items()]
    contents[PAPER_SUMS] = "".join(sums).encode()
    target.mkdir(exist_ok=True)
    write_together({target / name: content for name, content in contents.items()})
    return tuple(target / name for name in contents)


def paper_files(analysis: Analysis, progress: Callable[[str], None]) -> dict[str, bytes]:
    """All pieces by the names of their files; a function of the analysis alone, byte for byte."""
    if analysis.incomparable or len(analysis.comparable) < 2:
        why = wording.why_incomparable(analysis) if analysis.incomparable else "no difference of two is identified."
        raise DesignError(f"There is nothing to publish yet: the means cannot be compared as they stand. {why}")
    from lmemtest.plots import cd_diagram, detached_figures, forest_plot

    progress("drawing the figures")
    names = leaders(analysis)
    to_best = differences_to_best(names)
    with detached_figures():
        _, pairs, decisions = pictured(names)
        diagram = cd_diagram(decisions, width="column").figure
        differences = forest_plot(pairs, decisions=decisions, reference=names.comparable[0], width="column").figure
    images = {"figure.pdf": image_of(diagram, "pdf"), "differences.pdf": image_of(differences, "pdf")}
    progress("writing the paper")
    methods = methods_paragraph(analysis)
    answer = wording.answer(analysis)
    generator = f"lmemtest {analysis.versions['lmemtest']}"
    texts = {
        "ranking.tex": _fragment(ranking_table(analysis, to_best), "ranking"),
        "pairs.tex": _fragment(pairs_table(analysis), "pairs"),
        "sentence.tex": _source(answer),
        "sentence.txt": _plain_results(analysis, answer),
        "methods.tex": "% In styles of author and year (natbib): \\let\\cite\\citep before this.\n" + _source(methods),
        "references.bib": bibtex(cited_in(methods)),
        "article.tex": render_paper("article", generator=generator, **_captions(names, to_best)),
        "supplement.tex": _supplement(analysis, generator),
    }
    contents = images | {name: text.encode() for name, text in texts.items()}
    return {name: contents[name] for name in PAPER_FILES}


# -------------------------------------------------------------------------------------------------------- tables


def differences_to_best(analysis: Analysis) -> Comparisons:
    """Of all pairs those with the first algorithm, each less that one, in the order of the means.

    Nothing is computed again: adjustments and intervals are those of all pairs.
    """
    best, table = analysis.comparable[0], analysis.pairs.to_frame()
    table = table[(table["left"] == best) | (table["right"] == best)].copy()
    turned = (table["left"] == best).to_numpy()
    table.loc[turned, ["estimate", "t_ratio"]] *= -1.0
    table.loc[turned, ["ci_low", "ci_high"]] = -table.loc[turned, ["ci_high", "ci_low"]].to_numpy()
    table["left"] = np.where(turned, table["right"], table["left"])
    table["right"] = best
    others = [name for name in analysis.decisions.levels if name != best]
    return replace(analysis.pairs, table=table.set_index("left", drop=False).loc[others].reset_index(drop=True))


def ranking_table(analysis: Analysis, to_best: Comparisons) -> ResultTable:
    """Means, differences from the best, and ranks, as a paper prints them."""
    shown, best, write = leaders(analysis).to_frame(), to_best.table["right"].iloc[0], _writer(to_best)
    rows = to_best.to_frame().set_index("left").reindex(shown["algorithm"])
    numbers = {
        "mean": shown["emmean"],
        **_tested(rows, write, analysis.pairs.level),
        "ranks": [rank_span(*ends) for ends in zip(shown["rank_low"], shown["rank_high"], strict=True)],
    }
    heading = analysis.runs.algorithm if analysis.runs.algorithm not in numbers else "algorithm"
    frame = pd.DataFrame({heading: shown["algorithm"], **numbers})
    words = _words(analysis, best)
    notes = (
        _tests(analysis, untested=bool(rows["p_value"].drop(best).isna().any())),
        sentence_of(
            "paper.ranks",
            alpha=wording.alpha_text(analysis),
            left_out=len(shown) < len(analysis.decisions.levels),
            shown=len(shown),
            n=len(analysis.decisions.levels),
        ),
    )
    return ResultTable(
        sentence_of("paper.ranking", **words),
        frame,
        notes,
        {"mean": write, "difference": write, "p": partial(format_p, level=analysis.alpha)},
    )


def pairs_table(analysis: Analysis) -> ResultTable:
    """All pairs of the best algorithms, as a paper prints them."""
    levels = _best_on_a_page(analysis.decisions.levels)
    rows = analysis.pairs.best_first().to_frame()
    rows = rows[rows["left"].isin(levels) & rows["right"].isin(levels)].reset_index(drop=True)
    write = _writer(analysis.pairs)
    frame = pd.DataFrame({"first": rows["left"], "second": rows["right"], **_tested(rows, write, analysis.pairs.level)})
    left_out = sentence_of(
        "paper.best_pairs",
        left_out=len(levels) < len(analysis.decisions.levels),
        shown=len(levels),
        n=len(analysis.decisions.levels),
    )
    notes = (_tests(analysis, untested=bool(rows["p_value"].isna().any())), left_out)
    title = sentence_of("paper.pairs", **_words(analysis, analysis.comparable[0]))
    return ResultTable(
        title, frame, tuple(filter(None, notes)), {"difference": write, "p": partial(format_p, level=analysis.alpha)}
    )


def _best_on_a_page(levels: tuple[str, ...]) -> tuple[str, ...]:
    """The best algorithms whose pairs fit on a page, where long names take several lines."""
    lines = [-(-len(name) // NAME_CHARACTERS) for name in levels[:MOST_IN_PAIRS]]
    fit = (n for n in range(len(lines), 2, -1) if sum(map(max, combinations(lines[:n], 2))) <= MOST_LINES)
    return levels[: next(fit, 2)]


def _tested(rows: pd.DataFrame, write: Callable[[float], str], level: float) -> dict[str, Any]:
    """Columns of differences with their intervals and p-values; nothing where there is no test."""
    tested = rows["p_value"].notna().to_numpy()
    ends = zip(rows["ci_low"], rows["ci_high"], tested, strict=True)
    to = "\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}"
    intervals = [f"{write(low)}{to}{write(high)}" if has_test else MISSING for low, high, has_test in ends]
    return {
        "difference": rows["estimate"].where(tested).to_numpy(),
        f"{confidence(level)} CI": [interval.replace("-", "−") for interval in intervals],
        "p": rows["p_value"].to_numpy(),
    }


def _writer(pairs: Comparisons) -> Callable[[float], str]:
    """How to write numbers: to the second digit of the smallest standard error."""
    se = pairs.table["se"].to_numpy(dtype=float)
    return wording.writer(float(np.min(se, where=np.isfinite(se) & (se > 0), initial=np.inf)))


def _tests(analysis: Analysis, *, untested: bool) -> str:
    pairs = analysis.pairs
    return sentence_of(
        "paper.tests",
        intervals=intervals_text(pairs),
        n_pairs=len(pairs.table),
        adjustment=ADJUSTMENT_NAMES[pairs.adjust],
        errors=ERROR_NAMES[pairs.errors],
        ddf=DDF_NAMES[pairs.ddf],
        untested=untested,
    )


def _words(analysis: Analysis, best: str) -> dict[str, str]:
    return {"score": wording.measured(analysis), "better": wording.better(analysis), "best": best}


def _fragment(table: ResultTable, name: str) -> str:
    head = f"% Needs \\usepackage{{booktabs}} and \\usepackage[T1]{{fontenc}}; \\ref{{tab:{name}}}\n"
    return f"{head}{table.to_latex(label=f'tab:{name}', characters=COLUMN_CHARACTERS)}\n"


# ------------------------------------------------------------------------------------------------------ sentences


def _captions(analysis: Analysis, to_best: Comparisons) -> dict[str, str]:
    words = {**_words(analysis, analysis.comparable[0]), "alpha": wording.alpha_text(analysis)}
    words |= {"intervals": intervals_text(to_best)}
    untested = bool(np.triu(analysis.decisions.undecided.to_numpy()).any())
    return {name: _tied(sentence_of(f"paper.{name}", **words, untested=untested)) for name in ("figure", "differences")}


def _plain_results(analysis: Analysis, answer: tuple[Text, ...]) -> str:
    """The results, and below them what a reader must know before using them."""
    reservations = [plain(text) for text in wording.headline(analysis) if text not in answer]
    lines = [" ".join(map(plain, answer))]
    lines += ["", "Before you use it:", *(f"- {text}" for text in reservations)] if reservations else []
    return logged("\n".join(lines)) + "\n"


def _source(text: tuple[Text, ...]) -> str:
    """Texts as LaTeX source on lines of about a hundred characters, works by their keys."""
    parts: list[str] = []
    for sentence in text:
        parts += [_inline(sentence), " "]
    lines = textwrap.wrap("".join(parts), _LINE, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def _inline(text: Text, *, bold: bool = False) -> str:
    source = ""
    for part in text:
        match part:
            case Words(_, "cite", key):
                source = f"{source.rstrip()}~\\cite{{{key}}}"
            case Words(words, "code"):
                source += rf"\texttt{{{tex_text(words)}}}"
            case Words(words, "strong") if bold:
                source += rf"\textbf{{{_tied(words)}}}"
            case Words(words):
                source += _tied(words)
            case _:
                source += _tied(part)
    return source


_TIES = (
    (re.compile(r"(?<=\d) (?=\\%)"), r"\\,"),
    (re.compile(r"(?<=\bp) (?=[=$])|(?<=[=$]) (?=\d)"), "~"),
    (re.compile(r"(?<![\w}$-])-(?=\d)"), "$-$"),  # a minus, no hyphen
)


def _tied(words: str) -> str:
    """Words of a sentence as LaTeX source: numbers beside their units and signs, and with a minus."""
    source = tex_text(words)
    for pattern, tie in _TIES:
        source = pattern.sub(tie, source)
    return source


def _supplement(analysis: Analysis, generator: str) -> str:
    """Model, means, pairs, checks and limits on two pages."""
    recommended = [] if analysis.own_formula else analysis.recommendation.to_frame().to_dict("records")
    terms = [rf"\texttt{{{tex_text(row['term'])}}}: {_tied(row['meaning'])}" for row in recommended]
    serious = (finding for finding in analysis.check.findings if finding.severity != "note")
    checks = []
    for _, group in groupby(serious, lambda finding: (finding.severity, finding.kind)):
        first, *more = group
        checks.append(_tied(first.message) + f" And {len(more):,} more of this kind." * bool(more))
    checks += [
        _tied(f"{capitalised(one.kind)} of {one.subject}: {one.message}.") for one in wording.fit_problems(analysis)
    ]
    limits: Any = limitations_section(analysis).blocks[0]
    return render_paper(
        "supplement",
        generator=generator,
        title=f"Supplement: comparison of {len(analysis.runs.algorithms)} algorithms by "
        + tex_text(wording.measured(analysis)),
        overview=_tied(analysis.check.overview),
        formula=tex_text(analysis.formula),
        terms=terms,
        variation=_tied(wording.variation_sentence(analysis)),
        checks=checks or [_tied(sentence_of("paper.nothing_found"))],
        limits=[_inline(text, bold=True) for text in limits],
        call=rf"\texttt{{{tex_text(analysis.call)}}}",
        versions=", ".join(f"{name} {version}" for name, version in analysis.versions.items()) + ".",
    )
