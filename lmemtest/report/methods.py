"""The model, the diagnostics of its fit, the methods paragraph, the limitations and how to do it again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lmemtest.bench.data.normalise import OF_ALL, of_all
from lmemtest.bench.modelling.shared_seeds import holds_shared_seeds
from lmemtest.bench.robustness.variants import raw_runs
from lmemtest.core.caller import advice
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.rounding import below
from lmemtest.core.table import ResultTable
from lmemtest.core.words import counted, format_level, format_number, format_p, joined, percent, plural, sentence
from lmemtest.report import wording
from lmemtest.report.document import Block, Section, Text, Words, bullets, callout, code, figure, folded, paragraph
from lmemtest.report.prose import sentences_of, texts
from lmemtest.report.sources import bibtex, reference

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.report.analysis import Analysis

# ---------------------------------------------------------------------------------------------------- the model


def model_section(analysis: Analysis) -> Section:
    """Which model, what each term assumes, and what could not be in it."""
    recommended, fit, formula = analysis.recommendation, analysis.fit, analysis.own_formula
    reasons = ["algorithms are compared"]
    if analysis.n_benchmarks > 1:
        reasons.append(f"{analysis.sample.nouns} are a sample of those that could have been used")
    if "run" in set(analysis.components["kind"]):
        reasons.append("scores of one run are correlated")
    why = texts("model.why", own_formula=formula, recommended=recommended.formula, reasons=reasons)
    title = "Recommended terms" if formula else "Terms and what they assume"
    terms = ResultTable(title, recommended.to_frame())
    blocks: list[Block] = [code(analysis.formula), *why, terms]
    if fit.dispersion is not None:
        sd = fit.residual_variances.sort_values(kind="stable").pow(0.5)
        small, large = (f"{format_number(float(sd.iloc[i]), 3)} on {format_level(sd.index[i])}" for i in (0, -1))
        blocks += texts("model.dispersion", column=fit.dispersion, small=small, large=large)
    if recommended.left_out:
        blocks += [paragraph("Left out, because this design cannot identify them:"), bullets(recommended.left_out)]
    if recommended.tested:
        blocks += [paragraph("Tested and left out, because the data do not show them:"), bullets(recommended.tested)]
    if analysis.missing:
        lacking = paragraph(sentence(wording.error_text(analysis)))
        blocks.append(callout("warning", "Terms that this model lacks", lacking))
    if recommended.notes:
        blocks.append(callout("note", "Scope", bullets(recommended.notes)))
    return Section("model", "The model, and why", tuple(blocks[1:]), summary=(code(analysis.formula),))


def diagnostics_section(analysis: Analysis) -> Section:
    """What is known about the fit itself."""
    fit, optim = analysis.fit, analysis.fit.optim
    items = texts(
        "diagnostics.items",
        fit=fit,
        optim=optim,
        # one evaluation: solved in closed form
        one_start=optim.converged and not optim.restarts and optim.evaluations > 1,
        rests_on=wording.rests_on(analysis),
        n_benchmarks=analysis.n_benchmarks,
    )
    blocks: list[Block] = [list(items), *_assumptions(analysis)]
    if fit.notes:
        blocks.append(folded("Notes of the fit", bullets(fit.notes)))
    (gist,) = texts(
        "verdict.diagnostics",
        converged=optim.converged,
        singular=fit.is_singular,
        warnings=wording.fit_warnings(analysis),
    )
    return Section("diagnostics", "Diagnostics of the fit", tuple(blocks), summary=gist)


def _assumptions(analysis: Analysis) -> list[Block]:
    """The checks of the assumptions: what calls for action in words, all of them in a table and a figure."""
    diagnosis = analysis.diagnosis
    if diagnosis is None:
        return [paragraph("The distribution of residuals and random effects could not be checked.")]
    acts: list[Block] = [
        callout(
            "warning",
            f"{check.kind.capitalize()}: {check.subject}",
            paragraph(f"{sentence(check.message)} {check.advice}"),
        )
        for check in wording.fit_problems(analysis)
    ]
    notes = sentences_of("diagnostics.checks", moderated=analysis.pairs.errors == "moderated")
    fine = paragraph("No check of the assumptions (residuals, random effects, scales, bounds) calls for action.")
    frame = diagnosis.to_frame()[["check", "subject", "found", "p_value", "severity", "advice"]]
    frame.columns = ["check", "of", "found", "p", "severity", "advice"]
    table = ResultTable("Checks of the assumptions", frame, (*notes, *diagnosis.notes), {"p": format_p})
    drawn = figure(
        diagnosis.plot,
        alt=f"Quantiles of residuals and random effects, residuals against predictions, scales: {len(acts)} to act on.",
        caption=("Residuals and random effects against normal quantiles, residuals against predictions, scales.",),
    )
    return [*(acts or [fine]), folded("All checks of the assumptions", table), drawn]


# -------------------------------------------------------------------------------------------------- the methods


def methods_paragraph(analysis: Analysis) -> tuple[Text, ...]:
    """A paragraph to be copied into a paper."""
    fit, means, pairs = analysis.fit, analysis.means, analysis.pairs
    moderated, several = means.moderate is not None, len(analysis.decisions.levels) > 2
    followed = bool(fit.design.random) and not analysis.own_formula
    return texts(
        "methods.paragraph",
        runs=analysis.runs,
        fit=fit,
        measured=wording.measured(analysis),
        pairs=pairs,
        better=wording.better(analysis),
        size=_size(analysis),
        groups=[f"{term.group} ({len(term.levels):,} levels)" for term in fit.design.random],
        followed=followed,
        over=[*means.averaged_over, *means.covariates],
        joint=analysis.joint,
        n_pairs=len(pairs.to_frame()),
        several=several,
        robust=means.moderate.robust if means.moderate is not None else None,
        alike=wording.assumes_alike(analysis),
        adjustment=ADJUSTMENT_NAMES[pairs.adjust],
        by_simulation=moderated and pairs.adjust == "stepdown" and not analysis.missing,
        alpha=format_number(analysis.alpha, 3) if analysis.look else f"{analysis.alpha:g}",
        **_of_looks(analysis),
        level=f"{100 * (1 - analysis.alpha):.4g}",
        null=wording.tested(analysis)[0],
        claim=analysis.claim,
        sensitivity=analysis.sensitivity,
        versions=analysis.versions,
    )


def _of_looks(analysis: Analysis) -> dict[str, Any]:
    """How often the table was looked at, and what survives it."""
    if (look := analysis.look) is None:
        return {"look": None}
    p_value = analysis.pairs.to_frame()["p_value"]
    return {
        "look": look,
        "study_level": percent(look.alpha),
        "look_at": f"{joined(map(str, look.sizes))} {plural(look.unit)}" if look.sizes else "",
        "look_units": plural(look.unit),
        "alone": int(below(p_value, look.alpha).sum()),
        "survive": int(below(p_value, look.level).sum()),
    }


def cited_in(text: Iterable[Text]) -> tuple[str, ...]:
    """The keys of the works that a text cites, in their order."""
    parts = (part for paragraph in text for part in paragraph)
    return tuple(dict.fromkeys(part.href for part in parts if isinstance(part, Words) and part.role == "cite"))


def methods_section(analysis: Analysis) -> Section:
    """The paragraph and what it cites."""
    text = methods_paragraph(analysis)
    works = [reference(key) for key in cited_in(text)]
    gist = (f"Ready for a paper, with {counted(len(works), 'reference')}; adapt the names.",)
    entries = folded("BibTeX", code(bibtex(cited_in(text)).rstrip()))
    return Section("methods", "Methods paragraph", (*text, works, entries), summary=gist)


def _size(analysis: Analysis) -> str:
    runs, count = analysis.table, analysis.table.study.count
    families = [name for name in reversed(runs.family) if count(name) > 1]
    nested = "".join(f" in {count(name):,} {plural(name)}" for name in families if name not in runs.study.crossed)
    parts = [counted(analysis.n_benchmarks, "benchmark") + nested] if runs.benchmark else []
    parts += [f"{name} ({count(name)} families)" for name in families if name in runs.study.crossed]
    parts += [f"{name} ({count(name)} levels)" for name in runs.metafeatures if count(name) > 1]
    parts += [counted(count(runs.seed), "seed")] if runs.seed else []
    parts += [counted(count(runs.budget), "budget")] if count(runs.budget) > 1 else []
    return " x ".join(parts) or counted(analysis.fit.nobs, "score")


# ---------------------------------------------------------------------------------------------- the limitations


def limitations_section(analysis: Analysis) -> Section:
    """What these data cannot say."""
    runs, findings, moderated = analysis.runs, analysis.check.findings, analysis.means.moderate
    null, differs = wording.tested(analysis)
    unlike = analysis.n_benchmarks > 1 and analysis.check.scales_differ
    same_scale = [finding.advice for finding in findings if finding.kind == "score_scale"]
    shared = analysis.recommendation.seeds
    items = texts(
        "limitations.items",
        runs=runs,
        n_benchmarks=analysis.n_benchmarks,
        few_benchmarks=analysis.n_benchmarks < wording.FEW_BENCHMARKS,
        sample=analysis.sample,
        these_only=analysis.these_only,
        claim=analysis.claim,
        lacking=sentence(wording.error_text(analysis)) if analysis.missing else "",
        scale_ratio=format_number(analysis.check.scale_ratio, 3) if unlike else "",
        dispersion=analysis.fit.dispersion,
        measured=wording.measured(analysis),
        largest=wording.largest_text(analysis) if analysis.effects else None,
        same_scale=f"{same_scale[0][0].lower()}{same_scale[0][1:]}" if unlike else "",
        null=null,
        differs=differs,
        agreement=analysis.agreement,
        of_all=of_all(runs.scale.method) if runs.scale is not None and runs.scale.method in OF_ALL else "",
        seeds=_seeds(analysis),
        seed_test=shared.test if shared is not None else "",
        luck=sum(part["share"] for part in analysis.components.to_dict("records") if part["kind"] == "luck"),
        n_seeds=runs.study.count(runs.seed) if runs.seed else 0,
        findings={finding.kind for finding in findings},
        budgets=analysis.budgets,
        advice=advice,
        moderated=moderated,
        own=analysis.pairs.errors == "own",
        several=len(analysis.decisions.levels) > 2,
        clusters="seeds"
        if analysis.these_only
        else analysis.sample.nouns
        if analysis.sample.families
        else "benchmarks",
        decisions=analysis.decisions,
        alike=wording.assumes_alike(analysis),
        alpha=wording.alpha_text(analysis),
    )
    (gist,) = texts(
        "verdict.limitations",
        n_benchmarks=analysis.n_benchmarks,
        these_only=analysis.these_only,
        sample=analysis.sample,
        claim=analysis.claim,
        error=wording.error_text(analysis),
    )
    return Section(
        "limitations", "What the claim covers", (*wording.sample_texts(analysis)[:-1], list(items)), summary=gist
    )


def _seeds(analysis: Analysis) -> str:
    """What a seed means, where that decides how sure a comparison is; empty elsewhere."""
    runs, shared = analysis.runs, analysis.recommendation.seeds
    if runs.seed is None:
        return "results" if runs.study.count(*runs.study.run) == runs.n_rows else "none"
    if not runs.seed_shared:
        return "new on each benchmark"
    if not runs.study.seeds_cross:
        return ""
    if holds_shared_seeds(analysis.fit, runs):
        return "precaution" if shared is not None and shared.verdict == "precaution" else "modelled"
    warned = any((f.kind, f.severity) == ("shared_seeds", "warning") for f in analysis.check.findings)
    return "not modelled" if warned else ""


# --------------------------------------------------------------------------------------------------- once again


def digest_of(table: pd.DataFrame) -> str:
    """SHA-256 of a table's names and values, in the order of its rows: of the same table the same everywhere.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"tool": ["A", "B"], "loss": [0.5, 0.25]})
    >>> digest_of(table) == digest_of(table.copy()), digest_of(table) == digest_of(table[::-1])
    (True, False)
    """
    from pandas.util import hash_pandas_object

    text = lru_cache(maxsize=None, typed=True)(format_level)  # of levels, which many rows share
    digest = hashlib.sha256("\n".join(map(str, table.columns)).encode())
    for name in table:
        column = table[name]
        same = column if column.dtype.kind in "biuf" else column.map(text)  # whatever the library keeps texts in
        digest.update(hash_pandas_object(same, index=False, categorize=False).to_numpy().tobytes())
    return digest.hexdigest()


def reproduction_section(analysis: Analysis) -> Section:
    """Versions and the exact call."""
    import pandas as pd

    table = raw_runs(analysis.table) or analysis.table  # of scores as they were measured: no digit of it is computed
    curves = analysis.trials
    uses = ["the p-values of the checks of the assumptions"] if analysis.diagnosis is not None else []
    uses += ["the rates of false labels"] if curves is not None and curves.unit != "seed" else []
    random = f"random numbers are drawn for {joined(uses)} only, with a fixed seed" if uses else ""
    random = random or "no random numbers are drawn"
    versions = pd.DataFrame(list(analysis.versions.items()), columns=["package", "version"])
    gist = (f"The exact call, and versions: lmemtest {analysis.versions['lmemtest']} and what it rests on.",)
    blocks: tuple[Block, ...] = (
        code(analysis.call),
        paragraph(
            f"The result is a function of the table and this call: {random}. SHA-256 of the columns that have a role: "
        ),
        code(digest_of(table.to_frame()[list(table.study.columns)])),
        ResultTable("Versions", versions),
    )
    return Section("reproduction", "How to reproduce this", blocks, summary=gist)
