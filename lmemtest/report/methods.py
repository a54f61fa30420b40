"""The model, the diagnostics of its fit, the methods paragraph, the limitations and how to do it again."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from lmemtest.bench.data.normalise import OF_ALL, of_all
from lmemtest.bench.modelling.adequacy import holds_shared_seeds
from lmemtest.bench.modelling.shared_seeds import seeds_cross
from lmemtest.core.caller import advice
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.rounding import written
from lmemtest.core.table import ResultTable
from lmemtest.core.words import counted, format_level, format_number, format_p, joined, percent, plural, sentence
from lmemtest.report import wording
from lmemtest.report.document import (
    Block,
    Bullets,
    Callout,
    Code,
    CodeBlock,
    Fold,
    Link,
    Section,
    Strong,
    TableBlock,
    Text,
    paragraph,
)
from lmemtest.report.figures import figure

if TYPE_CHECKING:
    from lmemtest.report.analysis import Analysis

# Adjustment -> how it is named and cited, and the key of its reference.
_ADJUSTED = {
    "stepdown": (
        "step-down method (Tukey's test on the normal quantiles of the p-values or, where smaller, Shaffer 1986)",
        "shaffer",
    ),
    "shaffer": ("Shaffer method (Shaffer 1986)", "shaffer"),
    "tukey": ("Tukey method (Tukey-Kramer, Kramer 1956)", "kramer"),
    "holm": ("Holm method (Holm 1979)", "holm"),
    "fdr": (f"{ADJUSTMENT_NAMES['fdr']} method (Benjamini & Hochberg 1995)", "fdr"),
}
_INTERVALS = {
    "simultaneous": " and have simultaneous confidence intervals that exclude zero",
    "stepwise": " and have confidence intervals that exclude zero, each at the level of the step that decided it",
    "selected": " and have confidence intervals that exclude zero, at the level of the false coverage rate",
    "single": " and have confidence intervals that exclude zero",
}
_BY_SIMULATION = (
    " That the chance of any false difference is at most the level is known for this procedure from simulation, not "
    "from a proof."
)
_DDF = {
    "satterthwaite": ("with Satterthwaite degrees of freedom (Kuznetsova et al. 2017)", "lmertest"),
    "kenward-roger": (
        "with Kenward-Roger standard errors and degrees of freedom (Kenward & Roger 1997)",
        "kenward",
    ),
    "residual": ("with residual degrees of freedom", ""),
    "asymptotic": ("with the normal approximation", ""),
}


# ---------------------------------------------------------------------------------------------------- the model


def model_section(analysis: Analysis) -> Section:
    """Which model, what each term assumes, and what could not be in it."""
    recommended, fit, own = analysis.recommendation, analysis.fit, analysis.own_formula
    if own:
        why = paragraph(
            "This model was given by the user. For these data lmemtest recommends ",
            Code(recommended.formula),
            ". Its terms, with what each assumes:",
        )
    else:
        parts = ["algorithms are compared"]
        if analysis.n_benchmarks > 1:
            parts.append(f"{analysis.sample.nouns} are a sample of those that could have been used")
        if any(component.kind == "run" for component in analysis.components):
            parts.append("scores of one run are correlated")
        text = f"The model follows from the design: {joined(parts)}."
        if len(parts) > 1:
            text += (
                " Leaving such a term out counts correlated rows as independent evidence and finds differences that "
                "do not exist."
            )
        why = paragraph(text)
    title = "Recommended terms" if own else "Terms and what they assume"
    blocks: list[Block] = [CodeBlock(analysis.formula), why, TableBlock(ResultTable(title, recommended.to_frame()))]
    if fit.dispersion is not None:
        sd = fit.residual_variances.sort_values(kind="stable").pow(0.5)
        small, large = (f"{format_number(float(sd.iloc[i]), 3)} on {format_level(sd.index[i])}" for i in (0, -1))
        text = (
            f"Each level of {fit.dispersion} has a residual variance of its own: the residual standard deviation is "
            f"{large} and {small}. Scores of quiet levels therefore count for more than those of noisy ones in all "
            "that is estimated from single runs."
        )
        blocks.append(paragraph(text))
    if recommended.left_out:
        blocks.append(paragraph("Left out, because this design cannot identify them:"))
        blocks.append(Bullets(tuple((text,) for text in recommended.left_out)))
    if recommended.tested:
        blocks.append(paragraph("Tested and left out, because the data do not show them:"))
        blocks.append(Bullets(tuple((text,) for text in recommended.tested)))
    if analysis.missing:
        lacking = paragraph(sentence(wording.error_text(analysis)))
        blocks.append(Callout("warning", "Terms that this model lacks", (lacking,)))
    if recommended.notes:
        blocks.append(Callout("note", "Scope", (Bullets(tuple((text,) for text in recommended.notes)),)))
    return Section("model", "The model, and why", tuple(blocks))


def diagnostics_section(analysis: Analysis) -> Section:
    """What is known about the fit itself."""
    fit, optim = analysis.fit, analysis.fit.optim
    state = "The fit converged." if fit.converged else "The fit did not converge: treat every number with suspicion."
    start = "It was found from one starting point, without restarts"
    if not optim.converged or optim.restarts or optim.evaluations <= 1:  # one evaluation: solved in closed form
        start = f"Certificate: {optim.message}"
    items: list[Text] = [
        (
            Strong(state),
            f" {start}; {counted(optim.evaluations, 'evaluation')} of the likelihood; a further Newton step would "
            f"change the deviance by {written(optim.decrement, '.1g')}.",
        ),
        (
            Strong("The fit is singular."),
            " Some variance is estimated as zero (or a correlation as one): it is too small to be distinguished from "
            "zero in these data; this does not show that it is zero.",
        )
        if fit.is_singular
        else (Strong("The fit is not singular."), " All variances are estimated away from zero."),
    ]
    if wording.rests_on_rows(analysis):
        text = (
            f" With {analysis.n_benchmarks} benchmarks their variation is often estimated as zero where it is not. The "
            f"tests then rest on the {wording.finer_units(analysis)} instead of on the number of benchmarks and tend "
            "to be too optimistic: in a simulation with 4 benchmarks, 2 algorithms, 5 seeds and a variance of 0.3 "
            "times that of the residual, false differences at a nominal 5 % were found in 20 % of the cases in which "
            "it was estimated as zero, and in 6 % of all. See the cautious check in Pairwise differences."
        )
        items.append((Strong("Advantages do not change between benchmarks in this fit."), text))
    size = f"{counted(fit.nobs, 'row')} in {counted(len(fit.cells.n), 'cell')}"
    items.append((f"REML log-likelihood {written(fit.llf, '.4f')}, {fit.n_params} parameters, {size}.",))
    blocks: list[Block] = [Bullets(tuple(items)), *_assumptions(analysis)]
    if fit.notes:
        blocks.append(Fold("Notes of the fit", (Bullets(tuple((note,) for note in fit.notes)),)))
    return Section("diagnostics", "Diagnostics of the fit", tuple(blocks))


def _assumptions(analysis: Analysis) -> list[Block]:
    """The checks of the assumptions: what calls for action in words, all of them in a table and a figure."""
    from lmemtest.plots import diagnosis_plot

    found = analysis.diagnosis
    if found is None:
        return [paragraph("The distribution of residuals and random effects could not be checked.")]
    acts: list[Block] = [
        Callout(
            "warning", f"{check.kind.capitalize()}: {check.subject}", (paragraph(f"{check.message}. {check.advice}"),)
        )
        for check in found.checks
        if check.severity == "warning"
    ]
    fine = paragraph("No check of the assumptions (residuals, random effects, scales, bounds) calls for action.")
    frame = found.to_frame()[["check", "subject", "found", "p_value", "severity", "advice"]]
    frame.columns = ["check", "of", "found", "p", "severity", "advice"]
    note = (
        "skipped: no check was possible, see the advice; fine: nothing to do; note: worth knowing, no reason to "
        "stop; warning: the conclusions may be wrong. p: share of tables drawn from the fitted model that look as bad."
    )
    table = TableBlock(ResultTable("Checks of the assumptions", frame, (note, *found.notes), {"p": format_p}))
    drawn = figure(
        lambda: diagnosis_plot(found),
        alt=f"Quantiles of residuals and random effects, residuals against predictions, scales: {len(acts)} to act on.",
        caption=("Residuals and random effects against normal quantiles, residuals against predictions, scales.",),
    )
    return [*(acts or [fine]), Fold("All checks of the assumptions", (table,)), drawn]


# -------------------------------------------------------------------------------------------------- the methods


def methods_section(analysis: Analysis) -> Section:
    """A paragraph to be copied into a paper, and what it cites."""
    fit, em, runs, robust = analysis.fit, analysis.means, analysis.runs, analysis.means.moderate is not None
    several, ddf, adjust = len(analysis.decisions.levels) > 2, analysis.pairs.ddf, analysis.pairs.adjust
    followed = bool(fit.design.random) and not analysis.own_formula
    groups = [f"{term.group} ({len(term.levels):,} levels)" for term in fit.design.random]
    random = f", with random effects of {joined(groups, most=99)}" if groups else ""
    random += "; these follow from the design (Barr et al. 2013)" if followed else ""
    if fit.dispersion is not None:
        random += (
            f" and a residual variance for each of the {len(fit.residual_variances):,} levels of {fit.dispersion} "
            "(Pinheiro & Bates 2000)"
        )
    over = [*em.averaged_over, *em.covariates]
    averaged = f", averaged over {joined(over, most=99)}" if over else ""
    null, _ = wording.tested(analysis)
    hypothesis = f" The null hypothesis of a pair is that {null}." if null else ""
    about = f" Claims are about {analysis.claim}." if analysis.claim else ""
    done = runs.failures
    curve = "" if runs.curve is None else f"{runs.curve.sentence} "
    failed = f" {done.note}" if done is not None and done.n_failed else ""
    failed += f" {analysis.sensitivity.overview}" if analysis.sensitivity is not None else ""
    text = paragraph(
        f"We compared {len(runs.algorithms)} algorithms by {em.score} ({wording.better(analysis)} is better) on "
        f"{_size(analysis)}. {curve}We fitted the linear mixed model ",
        Code(analysis.formula),
        f" by restricted maximum likelihood (Bates et al. 2015) to n = {fit.nobs:,} scores{random}. Algorithms were "
        f"compared by their estimated marginal means (Searle et al. 1980){averaged}. {_procedure(analysis)}"
        f"{hypothesis}{about}{failed} Intervals are at the {100 * (1 - analysis.alpha):.4g} % level. Computations used "
        f"lmemtest {analysis.versions['lmemtest']} under Python {analysis.versions['Python']}.",
    )
    cited = ["bates", "searle", _DDF[ddf][1]]
    cited += [_ADJUSTED.get(adjust, ("", ""))[1], "piepho"] if several else []
    cited += ["smyth", "phipson"] if several and robust else []
    cited += ["pustejovsky"] if robust else []
    cited += ["dispersion"] if fit.dispersion is not None else []
    cited += ["barr"] if followed else []
    works = Bullets(tuple(reference(key) for key in cited if key))
    return Section("methods", "Methods paragraph", (paragraph("Ready for a paper; adapt the names."), text, works))


def reference(key: str) -> Text:
    """A work that the paragraph cites, from references.md, with a link to its DOI.

    Examples
    --------
    >>> reference("piepho")[-1].text
    'doi:10.1198/1061860043515'
    """
    known = files("lmemtest.report").joinpath("references.md").read_text(encoding="utf-8")
    found = re.search(rf"^- {key}: (.*?)(?: doi:(\S+))?$", known, re.MULTILINE)
    assert found is not None, key
    text, doi = found.groups()
    return (text, " ", Link(f"doi:{doi}", f"https://doi.org/{doi}")) if doi else (text,)


def _procedure(analysis: Analysis) -> str:
    """How the differences were tested, adjusted and grouped."""
    pairs, alpha, moderate = analysis.pairs, f"{analysis.alpha:g}", analysis.means.moderate
    several = len(analysis.decisions.levels) > 2
    tests, ddf, condition = "by t-tests" if several else "by a t-test", _DDF[pairs.ddf][0], ""
    if moderate is not None:
        label = f"{moderate.robust.n_clusters} levels of {moderate.robust.label} (CR2; Pustejovsky & Tipton 2018)"
        tests += (
            f" with moderated standard errors: the variance of each difference over the {label}, squeezed by empirical "
            "Bayes (Smyth 2004; with protection of outlying variances as in Phipson et al. 2016) towards what the "
            "variances of the two algorithms' advantages predict"
            if several
            else ", with the larger of the model's standard error and the one from the scatter of the differences "
            f"over the {label}"
        )
        condition = f"; levels of {moderate.robust.label} were taken as independent"
        if several:
            known = pairs.ddf == "kenward-roger"
            model = "Kenward-Roger" if known else "Satterthwaite"
            ddf = (
                "with the degrees of freedom of the scatter and of what was learned from the other differences, at "
                f"most the {model} degrees of freedom of the model "
                f"({'Kenward & Roger 1997' if known else 'Kuznetsova et al. 2017'})"
            )
    elif wording.assumes_alike(analysis):
        condition = "; all algorithms were taken to vary alike between benchmarks"
    if len(pairs.to_frame()) == 1:
        return f"Their difference was tested {tests}, {ddf}, and is called significant if its p-value is below {alpha}."
    by_simulation = moderate is not None and pairs.adjust == "stepdown" and not analysis.missing
    overall = "All" if analysis.joint is None else "The hypothesis of equal means was tested by an F-test, and all"
    if pairs.adjust == "none":
        adjusted, p = "without adjustment for their number", "a p-value"
    else:
        name = _ADJUSTED.get(pairs.adjust, (f"{ADJUSTMENT_NAMES[pairs.adjust]} method", ""))[0]
        adjusted, p = f"p-values adjusted by the {name}", "an adjusted p-value"
    return (
        f"{overall} {len(pairs.to_frame()):,} pairwise differences were tested {tests}, {ddf}, {adjusted}{condition}. "
        f"Differences with {p} below {alpha} are called significant{_INTERVALS[pairs.intervals]}; groups of algorithms "
        "without significant differences are the maximal cliques of the not-significant pairs (Piepho 2004)."
        f"{_BY_SIMULATION if by_simulation else ''}"
    )


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
    runs, n, sample = analysis.runs, analysis.n_benchmarks, analysis.sample
    null, differs = wording.tested(analysis)
    items: list[Text | None] = [_scope(analysis)]
    if analysis.missing:
        text = f" {sentence(wording.error_text(analysis))} The recommended model has them."
        items.append((Strong("Terms that the model lacks."), text))
    if 2 <= n < wording.FEW_BENCHMARKS:
        text = (
            " The variation between benchmarks is estimated from very few of them: intervals are wide, degrees of "
            "freedom approximate, and a difference that is not significant here is no evidence of equality."
        )
        items.append((Strong(f"Only {n} benchmarks."), text))
    items.append(_scale(analysis))
    if differs:
        beside = analysis.agreement if runs.scale is not None else None
        known = f" {beside.overview}" if beside is not None else ""
        items.append((Strong("What is tested."), f" The hypothesis is that {null}. {differs}{known}"))
    if runs.scale is not None and runs.scale.method in OF_ALL:
        items.append((Strong("The score is made of all algorithms."), f" {of_all(runs.scale.method)}"))
    items += [_instances(analysis) if runs.metafeatures else None, _seeds(analysis)]
    if any(finding.kind == "unpaired_seeds" for finding in analysis.check.findings):
        text = (
            " Not all algorithms ran with the same seeds, so their comparison within a benchmark is between different "
            "runs: valid, if what is missing is missing by chance, but less sensitive."
        )
        items.append((Strong("Unpaired seeds."), text))
    several = analysis.budgets.n > 1 or runs.curve is not None
    items += [_budgets(analysis) if several else None, _level(analysis) if sample.varies else None]
    text = " Look at the size of the differences and their intervals, and decide which size matters in practice."
    items.append((Strong("Statistical significance is not importance."), text))
    return Section("limitations", "Limitations", (Bullets(tuple(item for item in items if item)),))


def _scope(analysis: Analysis) -> Text:
    nouns, size = analysis.sample.nouns, analysis.sample.size
    if analysis.n_benchmarks < 2:
        where = "one benchmark" if analysis.runs.benchmark else "runs without a benchmark column"
        return (
            Strong("No generalisation over benchmarks."),
            f" The data hold {where}: how algorithms compare elsewhere cannot be estimated, however many seeds there "
            "are. More benchmarks are the only remedy.",
        )
    if not analysis.sample.varies:
        return (
            Strong("No generalisation over benchmarks."),
            " The fitted model has no term for advantages that change from benchmark to benchmark, so its p-values "
            f"concern these {size} {nouns} only and are far too small for a claim about new ones.",
        )
    return (
        Strong("What the average is over."),
        f" The comparison is about {nouns} like these {size:,}{_within(analysis)}. It generalises to "
        "others only to the extent that these are like a random sample of them; benchmarks that share data sets or "
        "models count for less than their number.",
    )


def _within(analysis: Analysis) -> str:
    """What a claim does not reach, where benchmarks have families."""
    if not analysis.claim:
        return ""
    return f", that is about {analysis.claim}"


def _scale(analysis: Analysis) -> Text | None:
    """What an average over unlike scales says."""
    if not (analysis.n_benchmarks > 1 and analysis.check.scales_differ):
        return None
    largest = f" ({wording.largest_text(analysis)})" if analysis.effects else ""
    score, column, errors = analysis.means.score, analysis.fit.dispersion, ""
    if column is None:
        model = f"This model gives every row the same residual variance and averages raw {score}"
        errors = " Standard errors are averages too: too small for the noisy benchmarks, too large for the quiet ones."
    else:
        model = (
            f"This model gives each level of {column} its own residual variance, but advantages vary to the same "
            f"degree on all benchmarks, and raw {score} are averaged"
        )
    advice = next(finding.advice for finding in analysis.check.findings if finding.kind == "score_scale")
    return (
        Strong("Scores are on different scales."),
        f" The scatter of the scores differs {format_number(analysis.check.scale_ratio, 3)}-fold between benchmarks. "
        f"{model}. An average on the raw scale says what happens to the sum of the scores: those with the largest "
        f"spread may dominate it{largest} and drown consistent small advantages elsewhere.{errors} To let every "
        f"benchmark count the same, {advice[0].lower()}{advice[1:]} Check whether the ranking holds.",
    )


def _seeds(analysis: Analysis) -> Text | None:
    """What the seed means, where that decides how sure a comparison is."""
    runs = analysis.runs
    if runs.seed is None:
        return (
            Strong("No seeds."),
            " Without a seed column rows are taken as independent of each other; repeated scores of one run would be "
            "counted as separate evidence.",
        )
    if not runs.seed_shared:
        return (
            Strong("Seeds count as new on each benchmark."),
            " Seeds were declared to number the repetitions within each benchmark only. If the same seed fixes "
            "something on several benchmarks (the configurations of a search, a trained model), the p-values are too "
            "small.",
        )
    if not seeds_cross(runs):
        return None
    if holds_shared_seeds(analysis.fit, runs):
        seeds, found = runs.study.count(runs.seed), analysis.recommendation.seeds
        share = sum(component.share for component in analysis.components if component.kind == "luck")
        part = f"its estimated share of the unexplained variance is {percent(share)}"
        few = " With two seeds that is estimated from very little: in simulations a nominal 5 % was up to 12 %."
        if found is not None and found.verdict == "precaution":
            text = (
                " Runs of an algorithm with the same seed may be correlated across benchmarks. That is not shown "
                f"({found.test}); the model allows for it as a precaution, and {part}."
            )
        else:
            text = (
                " The model allows runs of an algorithm with the same seed to be correlated across benchmarks "
                f"({part}), so the {seeds} seeds are a second sample: adding benchmarks alone does not make the answer "
                "more certain."
            )
        return (Strong("Shared seeds."), text + few * (seeds == 2))
    if any((f.kind, f.severity) == ("shared_seeds", "warning") for f in analysis.check.findings):
        return (
            Strong("Shared seeds."),
            " Runs with the same seed are correlated across benchmarks, and the model has no term for this, so its "
            "p-values are too small.",
        )
    return None


def _instances(analysis: Analysis) -> Text:
    runs, sample = analysis.runs, analysis.sample
    columns = joined(runs.instance, most=9)
    text = ""
    if sample.noun == "instance":
        text = (
            f" Every combination of {columns} counts as an instance of its own, and as independent of the others. To "
            "the extent that an algorithm performs alike on the instances of one benchmark they are not: the effective "
            f"sample is then closer to {analysis.n_benchmarks:,} than to {sample.size:,}, and intervals are too narrow."
        )
    elif sample.varies:
        text = (
            f" The combinations of {columns} are parts of their benchmark and do not add to the size of the sample, "
            f"which is {counted(sample.size, 'benchmark')}."
        )
    return (
        Strong("Instances."),
        f"{text} Advantages that depend on {joined(runs.metafeatures)} are averaged here: a separate question.",
    )


def _budgets(analysis: Analysis) -> Text:
    """What the comparison does with several budgets."""
    curve, use = analysis.runs.curve, analysis.budgets
    if curve is not None:
        means = {
            "last": "This compares final results; it says nothing about how soon they were reached.",
            "best": "This compares the best of each run; the best of noisy scores flatters noisy algorithms.",
        }.get(
            curve.how,
            "This compares whole curves, not final results: an algorithm that is slow at first and best at the end "
            f"is not rewarded. {advice('argument', name='curves')} has other choices: the last "
            "score, the best.",
        )
        return (Strong("Budgets."), f" {curve.sentence} {means}")
    budgets = counted(use.n, "budget")
    if use.role == "covariate":
        text = (
            f" The model adjusts for {budgets} by a curve, and compares algorithms at the mean budget. Where their "
            "curves cross, the answer depends on the budget."
        )
    elif use.role == "none" and not use.shared:
        text = (
            f" Scores at {budgets}, which are not the same for all runs, are averaged with equal weight for each row "
            "and without regard to the budget: what looks like a difference between algorithms may be one between "
            "budgets. Compare the runs at budgets that all of them reached."
        )
    else:
        weight = "row" if use.role == "none" else "budget, as each has its own mean in the model"
        text = (
            f" Scores at {budgets} are averaged with equal weight for each {weight}; so this compares whole curves, "
            "not final results. An algorithm that is slow at first and best at the end is not rewarded; filter the "
            "runs to one budget to compare there."
        )
    return (Strong("Budgets."), text)


def _level(analysis: Analysis) -> Text:
    """All that the level of the decisions assumes."""
    alpha, moderate, n = f"{100 * analysis.alpha:.3g} %", analysis.means.moderate, analysis.n_benchmarks
    if moderate is not None:
        families = analysis.sample.families
        over = analysis.sample.nouns if families else "benchmarks"
        how = (
            f"The difference is judged by the larger of its scatter over the {over} and the model's variance"
            if len(analysis.decisions.levels) == 2
            else f"Every difference is judged by its own scatter over the {over} and by what the variances of its "
            "two algorithms predict, so algorithms may vary to different degrees"
        )
        size = (
            f"in simulations with 4 to 16 {over} of 1 to 20 benchmarks each, one erratic algorithm among them, a "
            "nominal 5 % was at most about 5 to 7 % (docs/validation.md)"
            if families
            else f"with the {n} benchmarks here it is less reliable than with 6 or more"
            if n < wording.FEW_BENCHMARKS
            else "in simulations from 6 benchmarks on, erratic algorithms and variants of one method among them, a "
            "nominal 5 % was at most about 5 to 7 % (docs/validation.md)"
        )
        text = (
            f"{how}. Different levels of {moderate.robust.label} are taken as independent of each other, apart from "
            "what the model holds in common, and their advantages as about normal. The level of "
            f"{alpha} is nominal: {size}."
        )
    elif wording.assumes_alike(analysis):
        text = (
            f"The level of {alpha} holds if advantages vary between benchmarks to the same degree for all algorithms, "
            "and about normally. Where one algorithm is far more erratic than the others, comparisons with it are "
            "tested too liberally and those among the others too conservatively; moderated standard errors do not "
            "assume this."
        )
    else:
        text = "Advantages are taken to vary between benchmarks about normally."
    return (Strong("What the level assumes."), f" {text}")


# --------------------------------------------------------------------------------------------------- once again


def reproduction_section(analysis: Analysis) -> Section:
    """Versions and the exact call."""
    import pandas as pd

    curves = analysis.trials
    uses = ["the p-values of the checks of the assumptions"] if analysis.diagnosis is not None else []
    uses += ["the rates of false labels"] if curves is not None and curves.unit != "seed" else []
    random = f"random numbers are drawn for {joined(uses)} only, with a fixed seed" if uses else ""
    random = random or "no random numbers are drawn"
    versions = pd.DataFrame(list(analysis.versions.items()), columns=["package", "version"])
    blocks: tuple[Block, ...] = (
        CodeBlock(analysis.call),
        paragraph(f"The result is a function of the table and this call: {random}."),
        TableBlock(ResultTable("Versions", versions)),
    )
    return Section("reproduction", "How to reproduce this", blocks)
