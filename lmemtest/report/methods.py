"""The model, the methods paragraph, the limitations and how to do it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest._options import ADJUSTMENT_NAMES
from lmemtest._rounding import written
from lmemtest._table import ResultTable
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
from lmemtest.studies.modelling.adequacy import holds_shared_seeds
from lmemtest.studies.modelling.shared_seeds import seeds_cross
from lmemtest.words import counted, format_level, format_number, format_p, joined, sentence

if TYPE_CHECKING:
    from lmemtest.report.analysis import Analysis

REFERENCES: dict[str, tuple[str, str]] = {
    "bates": (
        "Bates, Mächler, Bolker & Walker (2015). Fitting linear mixed-effects models using lme4. Journal of "
        "Statistical Software 67(1), 1-48.",
        "10.18637/jss.v067.i01",
    ),
    "kenward": (
        "Kenward & Roger (1997). Small sample inference for fixed effects from restricted maximum likelihood. "
        "Biometrics 53(3).",
        "10.2307/2533558",
    ),
    "smyth": (
        "Smyth (2004). Linear models and empirical Bayes methods for assessing differential expression in microarray "
        "experiments. Statistical Applications in Genetics and Molecular Biology 3(1).",
        "10.2202/1544-6115.1027",
    ),
    "phipson": (
        "Phipson, Lee, Majewski, Alexander & Smyth (2016). Robust hyperparameter estimation protects against "
        "hypervariable genes and improves power to detect differential expression. Annals of Applied Statistics 10(2).",
        "10.1214/16-AOAS920",
    ),
    "pustejovsky": (
        "Pustejovsky & Tipton (2018). Small-sample methods for cluster-robust variance estimation and hypothesis "
        "testing in fixed effects models. Journal of Business & Economic Statistics 36(4).",
        "10.1080/07350015.2016.1247004",
    ),
    "shaffer": (
        "Shaffer (1986). Modified sequentially rejective multiple test procedures. Journal of the American Statistical "
        "Association 81(395).",
        "10.1080/01621459.1986.10478341",
    ),
    "lmertest": (
        "Kuznetsova, Brockhoff & Christensen (2017). lmerTest package: tests in linear mixed effects models. Journal "
        "of Statistical Software 82(13), 1-26.",
        "10.18637/jss.v082.i13",
    ),
    "searle": (
        "Searle, Speed & Milliken (1980). Population marginal means in the linear model: an alternative to least "
        "squares means. The American Statistician 34, 216-221.",
        "10.1080/00031305.1980.10483031",
    ),
    "kramer": (
        "Kramer (1956). Extension of multiple range tests to group means with unequal numbers of replications. "
        "Biometrics 12, 307-310.",
        "10.2307/3001469",
    ),
    "piepho": (
        "Piepho (2004). An algorithm for a letter-based representation of all-pairwise comparisons. Journal of "
        "Computational and Graphical Statistics 13, 456-466.",
        "10.1198/1061860043515",
    ),
    "barr": (
        "Barr, Levy, Scheepers & Tily (2013). Random effects structure for confirmatory hypothesis testing: keep it "
        "maximal. Journal of Memory and Language 68, 255-278.",
        "10.1016/j.jml.2012.11.001",
    ),
    "dispersion": (
        "Pinheiro & Bates (2000). Mixed-effects models in S and S-PLUS, section 5.2 (variance functions). Springer.",
        "10.1007/b98882",
    ),
    "holm": (
        "Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6, "
        "65-70.",
        "",
    ),
    "fdr": (
        "Benjamini & Hochberg (1995). Controlling the false discovery rate. Journal of the Royal Statistical Society B "
        "57, 289-300.",
        "10.1111/j.2517-6161.1995.tb02031.x",
    ),
}


# ---------------------------------------------------------------------------------------------------- the model


def model_section(analysis: Analysis) -> Section:
    """Which model, what each term assumes, and what could not be in it."""
    recommended = analysis.recommendation
    blocks: list[Block] = [CodeBlock(analysis.formula)]
    if analysis.own_formula:
        blocks.append(
            paragraph(
                "This model was given by the user. For these data lmemtest recommends ",
                Code(recommended.formula),
                ". Its terms, with what each assumes:",
            )
        )
    else:
        blocks.append(paragraph(_why(analysis)))
    blocks.append(TableBlock(_terms(analysis)))
    if analysis.fit.dispersion is not None:
        blocks.append(paragraph(_residuals_apart(analysis)))
    if recommended.left_out:
        blocks.append(paragraph("Left out, because this design cannot identify them:"))
        blocks.append(Bullets(tuple((text,) for text in recommended.left_out)))
    if analysis.missing.terms:
        text = sentence(wording.error_text(analysis))
        blocks.append(Callout("warning", "Terms that this model lacks", (paragraph(text),)))
    if recommended.notes:
        blocks.append(Callout("note", "Scope", (Bullets(tuple((text,) for text in recommended.notes)),)))
    return Section("model", "The model, and why", tuple(blocks))


def _why(analysis: Analysis) -> str:
    parts = ["algorithms are compared"]
    if wording.n_benchmarks(analysis) > 1:
        parts.append(f"{analysis.sample.noun}s are a sample of those that could have been used")
    if any(component.kind == "run" for component in analysis.components):
        parts.append("scores of one run are correlated")
    text = f"The model follows from the design: {joined(parts)}."
    if len(parts) == 1:
        return text
    return (
        f"{text} Leaving such a term out counts correlated rows as independent evidence and finds differences that "
        "do not exist."
    )


def _residuals_apart(analysis: Analysis) -> str:
    fit = analysis.fit
    sd = fit.residual_variances.sort_values(kind="stable").pow(0.5)
    small, large = (f"{format_number(float(sd.iloc[i]), 3)} on {format_level(sd.index[i])}" for i in (0, -1))
    return (
        f"Each level of {fit.dispersion} has a residual variance of its own: the residual standard deviation is "
        f"{large} and {small}. Scores of quiet levels therefore count for more than those of noisy ones in all that "
        "is estimated from single runs."
    )


def _terms(analysis: Analysis) -> ResultTable:
    frame = analysis.recommendation.to_frame()
    title = "Recommended terms" if analysis.own_formula else "Terms and what they assume"
    return ResultTable(title, frame)


def diagnostics_section(analysis: Analysis) -> Section:
    """What is known about the fit itself."""
    fit, optim = analysis.fit, analysis.fit.optim
    state = "The fit converged." if fit.converged else "The fit did not converge: treat every number with suspicion."
    items: list[Text] = [
        (
            Strong(state),
            f" {_starts(analysis)}; {counted(optim.evaluations, 'evaluation')} of the likelihood; a further "
            f"Newton step would change the deviance by {written(optim.decrement, '.1g')}.",
        ),
        (
            Strong("The fit is singular." if fit.is_singular else "The fit is not singular."),
            " Some variance is estimated as zero (or a correlation as one): it is too small to be distinguished from "
            "zero in these data; this does not show that it is zero."
            if fit.is_singular
            else " All variances are estimated away from zero.",
        ),
        *_on_rows(analysis),
        (
            f"REML log-likelihood {written(fit.llf, '.4f')}, {fit.n_params} parameters, "
            f"{counted(fit.nobs, 'row')} in "
            f"{counted(len(fit.cells.n), 'cell')}.",
        ),
    ]
    blocks: list[Block] = [Bullets(tuple(items)), *_assumptions(analysis)]
    if fit.notes:
        blocks.append(Fold("Notes of the fit", (Bullets(tuple((note,) for note in fit.notes)),)))
    return Section("diagnostics", "Diagnostics of the fit", tuple(blocks))


def _assumptions(analysis: Analysis) -> list[Block]:
    """The checks of the assumptions: what calls for action in words, all of them in a table and a figure."""
    from lmemtest.plots import diagnosis_plot

    found = analysis.diagnosis
    if found is None:
        text = "The distribution of residuals and random effects could not be checked."
        return [paragraph(text)]
    acts = [check for check in found.checks if check.decision == "act"]
    said: list[Block] = [
        Callout(
            "warning", f"{check.check.capitalize()}: {check.subject}", (paragraph(f"{check.found}. {check.advice}"),)
        )
        for check in acts
    ]
    if not acts:
        said = [paragraph("No check of the assumptions (residuals, random effects, scales, bounds) calls for action.")]
    frame = found.to_frame()[["check", "subject", "found", "p_value", "decision", "advice"]]
    frame.columns = ["check", "of", "found", "p", "decision", "advice"]
    note = (
        "not judged: too few rows; fine: nothing to do; look: know it and go on; act: the conclusions may be wrong. p: "
        "share of tables drawn from the fitted model that look as bad."
    )
    drawn = figure(
        lambda: diagnosis_plot(found),
        alt=f"Quantiles of residuals and random effects, residuals against predictions, scales: {len(acts)} to act on.",
        caption=("Residuals and random effects against normal quantiles, residuals against predictions, scales.",),
    )
    table = TableBlock(ResultTable("Checks of the assumptions", frame, (note,), {"p": format_p}))
    return [*said, Fold("All checks of the assumptions", (table,)), drawn]


def _starts(analysis: Analysis) -> str:
    optim = analysis.fit.optim
    if optim.converged and not optim.restarts and optim.evaluations > 1:  # one evaluation: solved in closed form
        return "It was found from one starting point, without restarts"
    return f"Certificate: {optim.message}"


def _on_rows(analysis: Analysis) -> list[Text]:
    """What it means that advantages do not vary in the fit, where benchmarks are few."""
    if not wording.rests_on_rows(analysis):
        return []
    return [
        (
            Strong("Advantages do not change between benchmarks in this fit."),
            f" With {wording.n_benchmarks(analysis)} benchmarks their variation is often estimated as zero where it is "
            f"not. The tests then rest on the {wording.finer_units(analysis)} instead of on the number of benchmarks "
            "and tend to be too optimistic: in a simulation with 4 benchmarks, 2 algorithms, 5 seeds and a variance of "
            "0.3 times that of the residual, false differences at a nominal 5 % were found in 20 % of the cases in "
            "which it was estimated as zero, and in 6 % of all. See the cautious check in Pairwise differences.",
        )
    ]


# -------------------------------------------------------------------------------------------------- the methods


def methods_section(analysis: Analysis) -> Section:
    """A paragraph to be copied into a paper."""
    references: tuple[Text, ...] = tuple(_reference(key) for key in _cited(analysis))
    return Section(
        "methods",
        "Methods paragraph",
        (
            paragraph("Ready for a paper; adapt the names."),
            *methods_paragraphs(analysis),
            Bullets(references),
        ),
    )


def methods_paragraphs(analysis: Analysis) -> tuple[Block, ...]:
    """What was done, in the words of a methods section."""
    fit, em, runs = analysis.fit, analysis.means, analysis.runs
    size = _size(analysis)
    return (
        paragraph(
            f"We compared {len(runs.algorithms)} algorithms by {em.score} "
            f"({'lower' if runs.direction == 'minimize' else 'higher'} is better) on {size}. We fitted the linear "
            "mixed model ",
            Code(analysis.formula),
            f" by restricted maximum likelihood (Bates et al. 2015) to n = {fit.nobs:,} scores"
            + _random_text(analysis)
            + _dispersion_text(analysis)
            + f". Algorithms were compared by their estimated marginal means (Searle et al. 1980)"
            f"{_averaged(analysis)}. {_tests(analysis)} Intervals are at the {100 * (1 - analysis.alpha):.4g} % level. "
            f"Computations used lmemtest {analysis.versions['lmemtest']} under Python {analysis.versions['Python']}.",
        ),
    )


def _tests(analysis: Analysis) -> str:
    null, _ = wording.tested(analysis)
    return f"{_procedure(analysis)} The null hypothesis of a pair is that {null}." if null else _procedure(analysis)


def _procedure(analysis: Analysis) -> str:
    pairs = len(analysis.pairs.to_frame())
    if pairs == 1:
        return (
            f"Their difference was tested {_by_t_tests(analysis)}, {_ddf(analysis)}, and is called significant if its "
            f"p-value is below {analysis.alpha:g}."
        )
    p = "a p-value" if analysis.pairs.adjust == "none" else "an adjusted p-value"
    return (
        f"{_overall(analysis)} {pairs:,} pairwise differences were tested {_by_t_tests(analysis)}, "
        f"{_ddf(analysis)}{_adjusted(analysis)}{_condition(analysis)}. "
        f"Differences with {p} below {analysis.alpha:g} are called significant; "
        "groups of algorithms without significant differences are the maximal cliques of the not-significant pairs "
        "(Piepho 2004)."
    )


def _condition(analysis: Analysis) -> str:
    """On which condition the adjustment holds its level."""
    if analysis.means.moderate is not None:
        return f"; levels of {analysis.means.moderate.robust.label} were taken as independent"
    alike = analysis.means.vcov == "model" and analysis.sample.varies
    return "; all algorithms were taken to vary alike between benchmarks" if alike else ""


def _overall(analysis: Analysis) -> str:
    if analysis.joint is None:
        return "All"
    return "The hypothesis of equal means was tested by an F-test, and all"


def _by_t_tests(analysis: Analysis) -> str:
    """The t-tests and where their standard errors come from."""
    if analysis.means.moderate is None:
        return "by t-tests" if len(analysis.separation.levels) > 2 else "by a t-test"
    robust = analysis.means.moderate.robust
    if len(analysis.separation.levels) == 2:
        return (
            "by a t-test, with the larger of the model's standard error and the one from the scatter of the "
            f"differences over the {robust.n_clusters} levels of {robust.label} (CR2; Pustejovsky & Tipton 2018)"
        )
    return (
        "by t-tests with moderated standard errors: the variance of each difference over the "
        f"{robust.n_clusters} levels of {robust.label} (CR2; Pustejovsky & Tipton 2018), squeezed by empirical Bayes "
        "(Smyth 2004; with protection of outlying variances as in Phipson et al. 2016) towards what the variances of "
        "the two algorithms' advantages predict"
    )


def _size(analysis: Analysis) -> str:
    runs = analysis.runs
    parts = [counted(wording.n_benchmarks(analysis), "benchmark")] if runs.benchmark else []
    levels = {name: len(runs.levels(name)) for name in runs.metafeatures}
    parts += [f"{name} ({n} levels)" for name, n in levels.items() if n > 1]
    parts += [counted(len(runs.levels(runs.seed)), "seed")] if runs.seed else []
    budgets = len(runs.levels(runs.budget)) if runs.budget else 1
    parts += [counted(budgets, "budget")] if budgets > 1 else []
    return " x ".join(parts) or counted(analysis.fit.nobs, "score")


def _random_text(analysis: Analysis) -> str:
    groups = [f"{term.group} ({len(term.levels):,} levels)" for term in analysis.fit.design.random]
    if not groups:
        return ""
    source = "" if analysis.own_formula else "; these follow from the design (Barr et al. 2013)"
    return f", with random effects of {joined(groups, most=99)}{source}"


def _dispersion_text(analysis: Analysis) -> str:
    fit = analysis.fit
    if fit.dispersion is None:
        return ""
    levels = len(fit.residual_variances)
    return f" and a residual variance for each of the {levels:,} levels of {fit.dispersion} (Pinheiro & Bates 2000)"


def _averaged(analysis: Analysis) -> str:
    over = [*analysis.means.averaged_over, *analysis.means.covariates]
    return f", averaged over {joined(over, most=99)}" if over else ""


def _ddf(analysis: Analysis) -> str:
    if analysis.means.moderate is not None and len(analysis.separation.levels) > 2:
        kind, source = (
            ("Kenward-Roger", "Kenward & Roger 1997")
            if analysis.pairs.ddf == "kenward-roger"
            else ("Satterthwaite", "Kuznetsova et al. 2017")
        )
        return (
            "with the degrees of freedom of the scatter and of what was learned from the other differences, at most "
            f"the {kind} degrees of freedom of the model ({source})"
        )
    return {
        "satterthwaite": "with Satterthwaite degrees of freedom (Kuznetsova et al. 2017)",
        "kenward-roger": "with Kenward-Roger standard errors and degrees of freedom (Kenward & Roger 1997)",
        "residual": "with residual degrees of freedom",
        "asymptotic": "with the normal approximation",
    }[analysis.pairs.ddf]


def _adjusted(analysis: Analysis) -> str:
    adjust = analysis.pairs.adjust
    if adjust == "none":
        return ", without adjustment for their number"
    source = {
        "stepdown": " (Tukey's test on the normal quantiles of the p-values or, where smaller, Shaffer 1986)",
        "shaffer": " (Shaffer 1986)",
        "tukey": " (Tukey-Kramer, Kramer 1956)",
        "holm": " (Holm 1979)",
        "fdr": " (Benjamini & Hochberg 1995)",
    }
    name = "step-down" if adjust == "stepdown" else ADJUSTMENT_NAMES[adjust]
    return f", p-values adjusted by the {name} method{source.get(adjust, '')}"


def _cited(analysis: Analysis) -> list[str]:
    keys = ["bates", "searle"]
    keys += {"satterthwaite": ["lmertest"], "kenward-roger": ["kenward"]}.get(analysis.pairs.ddf, [])
    if len(analysis.separation.levels) > 2:
        keys += [{"tukey": "kramer", "stepdown": "shaffer"}.get(analysis.pairs.adjust, analysis.pairs.adjust), "piepho"]
        keys += ["smyth", "phipson"] if analysis.means.moderate is not None else []
    keys += ["pustejovsky"] if analysis.means.moderate is not None else []
    keys += ["dispersion"] if analysis.fit.dispersion is not None else []
    keys += ["barr"] if analysis.fit.design.random and not analysis.own_formula else []
    return [key for key in keys if key in REFERENCES]


def _reference(key: str) -> Text:
    text, doi = REFERENCES[key]
    return (text, " ", Link(f"doi:{doi}", f"https://doi.org/{doi}")) if doi else (text,)


# ---------------------------------------------------------------------------------------------- the limitations


def limitations_section(analysis: Analysis) -> Section:
    """What these data cannot say."""
    about = (_scope(analysis), _lacking(analysis), _few(analysis), _scale(analysis), _tested(analysis))
    items = [item for item in (*about, *_design(analysis)) if item]
    return Section("limitations", "Limitations", (Bullets(tuple(items)),))


def _scope(analysis: Analysis) -> Text:
    noun, size = analysis.sample.noun, analysis.sample.size
    if wording.n_benchmarks(analysis) < 2:
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
            f"concern these {size} {noun}s only and are far too small for a claim about new ones.",
        )
    return (
        Strong("What the average is over."),
        f" The comparison is about {noun}s like these {size:,}. It generalises to others only to the extent that "
        "these are like a random sample of them; benchmarks that share data sets or models count for less than their "
        "number.",
    )


def _tested(analysis: Analysis) -> Text | None:
    """Which hypothesis is tested on ranks and other relative scores."""
    null, differs = wording.tested(analysis)
    if not differs:
        return None
    same = analysis.agreement
    known = f" {same.overview()}" if same is not None else ""
    return (Strong("What is tested."), f" The hypothesis is that {null}. {differs}{known}")


def _lacking(analysis: Analysis) -> Text | None:
    if not analysis.missing.terms:
        return None
    text = sentence(wording.error_text(analysis))
    return (Strong("Terms that the model lacks."), f" {text} The recommended model has them.")


def _few(analysis: Analysis) -> Text | None:
    benchmarks = wording.n_benchmarks(analysis)
    if not 2 <= benchmarks < wording.FEW_BENCHMARKS:
        return None
    return (
        Strong(f"Only {benchmarks} benchmarks."),
        " The variation between benchmarks is estimated from very few of them: intervals are wide, degrees of freedom "
        "approximate, and a difference that is not significant here is no evidence of equality.",
    )


def _scale(analysis: Analysis) -> Text | None:
    ratio = analysis.check.scale_ratio
    if not (wording.n_benchmarks(analysis) > 1 and analysis.check.scales_differ):
        return None
    largest = f" ({wording.largest_text(analysis)})" if analysis.effects else ""
    apart = analysis.fit.dispersion is not None
    model = (
        f"This model gives each level of {analysis.fit.dispersion} its own residual variance, but advantages vary to "
        f"the same degree on all benchmarks, and raw {analysis.means.score} are averaged"
        if apart
        else f"This model gives every row the same residual variance and averages raw {analysis.means.score}"
    )
    errors = (
        ""
        if apart
        else " Standard errors are averages too: too small for the noisy benchmarks, too large for the quiet ones."
    )
    advice = next(finding.advice for finding in analysis.check.findings if finding.kind == "score_scale")
    return (
        Strong("Scores are on different scales."),
        f" The scatter of the scores differs {format_number(ratio, 3)}-fold between benchmarks. {model}. An average on "
        "the raw scale says what happens to the sum of the scores: those with the largest spread may dominate it"
        f"{largest} and drown consistent small advantages elsewhere.{errors} To let every benchmark count the "
        f"same, {advice[0].lower()}{advice[1:]} Check whether the ranking holds.",
    )


def _seeds(analysis: Analysis) -> list[Text]:
    """What the seed means across benchmarks, where that decides how sure a comparison is."""
    runs = analysis.runs
    if not runs.seed_shared:
        text = (
            " Seeds were declared to number the repetitions within each benchmark only. If the same seed "
            "fixes something on several benchmarks (the configurations of a search, a trained model), the p-values "
            "are too small."
        )
        return [(Strong("Seeds count as new on each benchmark."), text)]
    if holds_shared_seeds(analysis.fit, runs):
        seeds = len(runs.levels(str(runs.seed)))
        text = (
            f" The model allows runs of an algorithm with the same seed to be correlated across benchmarks, so the "
            f"{seeds} seeds are a second sample: adding benchmarks alone does not make the answer more certain."
        )
        few = (
            " With two seeds that is estimated from very little: in simulations a nominal 5 % was up to 12 %."
            if seeds == 2
            else ""
        )
        return [(Strong("Shared seeds."), text + few)]
    if any((f.kind, f.severity) == ("shared_seeds", "warning") for f in analysis.check.findings):
        text = (
            " Runs with the same seed are correlated across benchmarks, and the model has no term for this, so its "
            "p-values are too small."
        )
        return [(Strong("Shared seeds."), text)]
    return []


def _design(analysis: Analysis) -> list[Text]:
    runs, kinds = analysis.runs, {finding.kind for finding in analysis.check.findings}
    items: list[Text] = []
    if runs.metafeatures:
        items.append(_instances(analysis))
    if runs.seed is None:
        items.append(
            (
                Strong("No seeds."),
                " Without a seed column rows are taken as independent of each other; repeated scores of one run would "
                "be counted as separate evidence.",
            )
        )
    elif seeds_cross(runs) or not runs.seed_shared:
        items += _seeds(analysis)
    if "unpaired_seeds" in kinds:
        items.append(
            (
                Strong("Unpaired seeds."),
                " Not all algorithms ran with the same seeds, so their comparison within a benchmark is between "
                "different runs: valid, if what is missing is missing by chance, but less sensitive.",
            )
        )
    if analysis.budgets.n > 1:
        items.append((Strong("Budgets."), _budgets(analysis)))
    if analysis.sample.varies:
        items.append(
            (
                Strong("What the level assumes."),
                f" {wording.level_text(analysis)}",
            )
        )
    items.append(
        (
            Strong("Statistical significance is not importance."),
            " Look at the size of the differences and their intervals, and decide which size matters in practice.",
        )
    )
    return items


def _instances(analysis: Analysis) -> Text:
    runs, sample = analysis.runs, analysis.sample
    columns = joined((*runs.instance,), most=9)
    averaged = (
        f" Advantages that depend on {joined(runs.metafeatures)} are averaged here; they are a separate question."
    )
    if sample.noun == "instance":
        text = (
            f" Every combination of {columns} counts as an instance of its own, and as independent of the others. To "
            "the extent that an algorithm performs alike on the instances of one benchmark they are not: the effective "
            f"sample is then closer to {wording.n_benchmarks(analysis):,} than to {sample.size:,}, and intervals are "
            "too narrow."
        )
    elif sample.varies:
        text = (
            f" The combinations of {columns} are parts of their benchmark and do not add to the size of the sample, "
            f"which is {counted(sample.size, 'benchmark')}."
        )
    else:
        text = ""
    return (Strong("Instances."), f"{text}{averaged}")


def _budgets(analysis: Analysis) -> str:
    """What the comparison does with several budgets."""
    use = analysis.budgets
    if use.role == "covariate":
        return (
            f" The model adjusts for {counted(use.n, 'budget')} by a curve, and compares algorithms at the "
            "mean budget. Where their curves cross, the answer depends on the budget."
        )
    if use.role == "none" and not use.shared:
        return (
            f" Scores at {counted(use.n, 'budget')}, which are not the same for all runs, are averaged with "
            "equal weight for each row and without regard to the budget: what looks like a difference between "
            "algorithms may be one between budgets. Compare the runs at budgets that all of them reached."
        )
    weight = "row" if use.role == "none" else "budget, as each has its own mean in the model"
    return (
        f" Scores at {counted(use.n, 'budget')} are averaged with equal weight for each {weight}; so this "
        "compares whole curves, not final results. An algorithm that is slow at first and best at the end is not "
        "rewarded; filter the runs to one budget to compare there."
    )


# --------------------------------------------------------------------------------------------------- once again


def reproduction_section(analysis: Analysis) -> Section:
    """Versions and the exact call."""
    import pandas as pd

    versions = pd.DataFrame(list(analysis.versions.items()), columns=["package", "version"])
    blocks: tuple[Block, ...] = (
        CodeBlock(analysis.call),
        paragraph(f"The result is a function of the table and this call: {_random_numbers(analysis)}."),
        TableBlock(ResultTable("Versions", versions)),
    )
    return Section("reproduction", "How to reproduce this", blocks)


def _random_numbers(analysis: Analysis) -> str:
    curves, uses = analysis.trials, []
    if analysis.diagnosis is not None:
        uses.append("the p-values of the checks of the assumptions")
    if curves is not None and curves.unit != "seed":
        uses.append("the rates of false labels")
    if not uses:
        return "no random numbers are drawn"
    return f"random numbers are drawn for {joined(uses)} only, with a fixed seed"
