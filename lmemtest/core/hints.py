"""What people type first, and what it is called here: a synonym works, any other guess is answered with what to write.

One table of synonyms and one of advice, by what the name is asked of: the package, `plots`, a class and those above
it, or a function whose argument it would be. A name in neither gets the nearest one that exists. To add a guess is to
add a line.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from lmemtest.core.options import ROLES
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

F = TypeVar("F", bound=Callable[..., Any])

_ALIKE = 0.7  # likeness of two names, at least: 0.6 takes "estimates" for "letters"
_TESTS = "lmemtest.rank(runs, test={test!r})"
_MEANS = "fit.emmeans('algorithm')"
_RANKING = "bench.ranking"


def _by_term(column: str) -> Callable[[Any], pd.Series]:
    """A column of the table of fixed effects, by term."""
    return lambda fit: fit.to_frame().set_index("term")[column]


def _levels(role: str) -> Callable[[Any], tuple[Any, ...]]:
    """The levels of the column with a role."""

    def levels(runs: Any) -> tuple[Any, ...]:
        column = getattr(runs, role)
        if column is None:
            raise AttributeError(f"These runs have no {role}: no column was given that role.")
        return tuple(runs.levels(column))

    return levels


def _of_frame(name: str) -> Callable[[Any], Any]:
    """An attribute of the table as a pandas frame."""
    return lambda runs: getattr(runs.to_frame(), name)


# Of a package: a function elsewhere in it, "module:name"; of an object: an attribute of it, or a function of it.
SYNONYMS: dict[str, dict[str, str | Callable[[Any], Any]]] = {
    "lmemtest": {
        "bands": "tuning.curves:curves",
        "bootstrap": "lmm.intervals.bootstrap:bootstrap",
        "broken_traces": "bench.checks.traces:broken_traces",
        "cd_diagram": "plots:cd_diagram",
        "cluster_robust": "lmm.intervals.cluster_robust:cluster_robust",
        "contrast": "lmm.means.contrasts:contrast",
        "copied_runs": "bench.checks.copies:copied_runs",
        "diagnose": "lmm.diagnostics.diagnose:diagnose",
        "emmeans": "lmm.means.emmeans:emmeans",
        "emtrends": "lmm.means.emmeans:emtrends",
        "fetch_priorband": "bench.data.datasets:fetch_priorband",
        "fit": "lmm.model:fit_lmm",
        "influence": "lmm.diagnostics.influence:influence",
        "joint_tests": "lmm.means.f_tests:joint_tests",
        "leaderboard": f"{_RANKING}.leaderboard:leaderboard",
        "glmer": "lmm.model.glmm:fit_glmm",
        "lmer": "lmm.model:fit_lmm",
        "load_hpo_runs": "bench.data.datasets:load_hpo_runs",
        "mixedlm": "lmm.model:fit_lmm",
        "outperform": "bench.outperforming.outperforming:outperforming",
        "pairs": "lmm.means.contrasts:pairs",
        "probability_of_outperforming": "bench.outperforming.outperforming:outperforming",
        "random_effects": "lmm.intervals.random_effects:random_effects",
        "rank_algorithms": f"{_RANKING}.rank:rank",
        "ranking": f"{_RANKING}.rank:rank",
        "ranova": "lmm.hypotheses.ranova:ranova",
        "sample_size": "bench.power.plan:plan",
        "similar_algorithms": "bench.checks.similar:similar_algorithms",
        "similar_benchmarks": "bench.checks.similar:similar_benchmarks",
    },
    "plots": {
        "box": "score_distributions_plot",
        "boxplot": "score_distributions_plot",
        "caterpillar": "random_effects_plot",
        "cd": "cd_diagram",
        "cd_plot": "cd_diagram",
        "critical_difference": "cd_diagram",
        "critical_difference_diagram": "cd_diagram",
        "forest": "forest_plot",
        "heat_map": "benchmark_effects_plot",
        "heatmap": "benchmark_effects_plot",
        "qqplot": "qq_plot",
        "violin": "score_distributions_plot",
        "violinplot": "score_distributions_plot",
    },
    "Result": {
        "as_frame": "to_frame",
        "conclusions": "sentences",
        "findings_text": "sentences",
        "interpretation": "sentences",
        "text": "to_text",
        "to_dataframe": "to_frame",
        "to_df": "to_frame",
        "to_pandas": "to_frame",
        "to_string": "to_text",
        "write": "save",
    },
    "Comparisons": {"cld": "decisions", "means": "estimates", "to_decisions": "decisions"},
    "Estimates": {"cld": "decisions", "difference": "differences", "lsmeans": "estimate", "trt_vs_ctrl": "against"},
    "Decisions": {"cd": "critical_difference", "cld": "letters", "order": "levels", "ranking": "levels"},
    "Ranking": {
        "cd_diagram": "plot",
        "groups": lambda ranking: ranking.decisions.groups,
        "letters": lambda ranking: ranking.decisions.letters,
        "order": "levels",
        "ranks": "table",
        "report": "paragraph",
        "text": "paragraph",
    },
    "Analysis": {
        "cd_diagram": "plot",
        "emmeans": "means",
        "groups": lambda analysis: analysis.decisions.groups,
        "letters": lambda analysis: analysis.decisions.letters,
        "model": "fit",
        "ranking": lambda analysis: analysis.to_frame(),
        "recommended": "recommendation",
        "table": lambda analysis: analysis.to_frame(),
        "to_dataframe": "to_frame",
        "to_df": "to_frame",
        "to_pandas": "to_frame",
        "write": "save",
    },
    "LmmFit": {
        "VarCorr": lambda fit: lambda: fit.varcorr,  # a function in R, so it is called
        "beta": "params",
        "coefficients": "params",
        "coefs": "params",
        "df_resid": lambda fit: fit.nobs - fit.rank,
        "fe_params": "params",
        "fitted": "fittedvalues",
        "fitted_values": "fittedvalues",
        "fixed_effects": "params",
        "isSingular": "is_singular",
        "loglik": "llf",
        "loglike": "llf",
        "loglikelihood": "llf",
        "lsmeans": "emmeans",
        "marginal_means": "emmeans",
        "optinfo": "optim",
        "p_values": _by_term("p_value"),
        "pvalues": _by_term("p_value"),
        "se": "bse",
        "sigma": lambda fit: fit.scale**0.5,
        "sigma2": "scale",
        "standard_errors": "bse",
        "std_errors": "bse",
        "t_values": _by_term("t_ratio"),
        "tvalues": _by_term("t_ratio"),
        "update": "refit",
        "variance_components": "varcorr",
        "vcov": "cov_params",
    },
    "Runs": {
        "benchmarks": _levels("benchmark"),
        "budgets": _levels("budget"),
        "datasets": _levels("benchmark"),
        "df": lambda runs: runs.to_frame(),
        "normalise": "normalize",
        "seeds": _levels("seed"),
        "subset": "filter",
        "to_df": "to_frame",
        "to_pandas": "to_frame",
        **{name: _of_frame(name) for name in ("describe", "groupby", "head", "info", "query", "sample", "tail")},
        **{name: _of_frame(name) for name in ("dtypes", "pivot_table", "shape")},
    },
}

ADVICE: dict[str, dict[str, str]] = {
    "lmemtest": {
        "a12": "lmemtest.outperforming(a, b, 'probability')",
        "anova": "fit.anova() for the terms of a fit, lmemtest.glrt(smaller, larger) for two fits",
        "aso": "lmemtest.outperforming(runs, measure='stochastic_order')",
        "autorank": "from lmemtest.compat.autorank import autorank, or lmemtest.rank(data)",
        "bayesian": "lmemtest.rank(runs, 'bayesian')",
        "bayesian_signed_rank": "lmemtest.rank(runs, 'bayesian', test='signed_rank')",
        "cld": f"{_MEANS}.cld()",
        "cliffs_delta": "lmemtest.outperforming(a, b, 'cliff_delta')",
        "cohen_d": "lmemtest.outperforming(a, b, 'cohen_d')",
        "collinearity": "fit.diagnose().collinearity",
        "compare": "lmemtest.rank(runs) or lmemtest.analyze(runs); of tuning curves lmemtest.tuning.compare(a, b)",
        "confint": "fit.profile(), or ci_low and ci_high of the table of any result",
        "conf_int": "fit.profile(), or ci_low and ci_high of the table of any result",
        "conover": _TESTS.format(test="conover"),
        "convert": "lmemtest.importers, or lmemtest convert on the command line",
        "create_report": "lmemtest.analyze(runs).save('report.html')",
        "demo": "lmemtest.analyze(lmemtest.datasets.load_hpo_runs()).save('report.html')",
        **dict.fromkeys(("eff_size", "effect_size"), "lmemtest.outperforming(a, b, 'cohen_d')"),
        **dict.fromkeys(
            ("bradley_terry", "elo"),
            "lmemtest.rate_votes(votes) for votes, or lmemtest.leaderboard(runs) for Elo ratings of scores",
        ),
        "compat": "import lmemtest.compat.autorank, or import lmemtest.compat.significance_analysis",
        "forest_plot": "lmemtest.plots.forest_plot(pairs)",
        "normalize": "runs.normalize(method)",
        "optimality_gap": "lmemtest.aggregate_scores(runs)",
        "power_analysis": "lmemtest.power(lmemtest.variance_sources(runs), effect=..., n_benchmarks=..., n_seeds=...)",
        "profile_plot": "fit.profile().plot()",
        "tost": f"{_MEANS}.equivalence(margin)",
        "friedman": _TESTS.format(test="nemenyi") + ", which starts with Friedman's test",
        "friedmanchisquare": _TESTS.format(test="nemenyi") + ", which starts with Friedman's test",
        "glmm": "lmemtest.fit_glmm(formula, data, family=...)",
        "heatmap": "lmemtest.benchmark_effects(runs).plot()",
        "horizons": "lmemtest.anytime(runs).at(budgets)",
        "icc": "fit.icc()",
        "interquartile_mean": "lmemtest.aggregate_scores(runs)",
        **dict.fromkeys(("boxplot", "violin", "violinplot"), "lmemtest.score_distributions(runs).plot()"),
        "critical_difference": "lmemtest.cd_diagram(lmemtest.rank(runs))",
        "iqm": "lmemtest.aggregate_scores(runs)",
        "latex_table": "result.to_latex()",
        "lrt": "lmemtest.glrt(smaller, larger)",
        "lrtest": "lmemtest.glrt(smaller, larger)",
        "model": "lmemtest.ModelBuilder(runs), or a formula: lmemtest.fit_lmm(formula, runs)",
        "nemenyi": _TESTS.format(test="nemenyi"),
        "normalization_stability": "lmemtest.robustness(runs, of='algorithms')",
        "pairwise": f"{_MEANS}.pairs(), or lmemtest.rank(runs).pairs",
        **dict.fromkeys(("pass_at_k", "pass_hat_k", "maj_at_k"), "lmemtest.repeated_attempts(table, ..., epoch=...)"),
        "performance_profile": "lmemtest.aggregate_scores(runs).profiles(), and its plot()",
        "plot": "result.plot() of any result, or a function of lmemtest.plots",
        "plot_stats": "from lmemtest.compat.autorank import plot_stats, or lmemtest.rank(data).plot()",
        "posthoc_nemenyi_friedman": _TESTS.format(test="nemenyi"),
        "probability_of_improvement": "lmemtest.aggregate_scores(runs).improvement()",
        "r2": "fit.r2()",
        "read_csv": "lmemtest.read_runs(path, score=..., direction=..., algorithm=...)",
        "relative_ranks": "lmemtest.anytime(runs).ranks()",
        "report": "lmemtest.analyze(runs).save('report.html')",
        "sample_efficiency": "lmemtest.anytime(runs)",
        **dict.fromkeys(("sign_flip_test", "sign_flips"), "lmemtest.permutation_test(runs, exchange='signs')"),
        "signed_rank": _TESTS.format(test="wilcoxon"),
        "stochastic_order": "lmemtest.outperforming(runs, measure='stochastic_order')",
        "test": "lmemtest.rank(runs, 'frequentist')",
        "sensitivity": "lmemtest.robustness(runs), by what is varied: of='score', of='failures', of='test', ...",
        "stability": "lmemtest.robustness(runs, of='benchmarks'), or lmemtest.rank(runs).stability()",
        "ttest": _TESTS.format(test="t"),
        "ttest_rel": _TESTS.format(test="t"),
        "tukey": _TESTS.format(test="tukey"),
        "tukey_hsd": _TESTS.format(test="tukey"),
        "vargha_delaney": "lmemtest.outperforming(a, b, 'probability')",
        "variance_study": "lmemtest.variance_sources(table, score=..., sources=[...])",
        "wilcoxon": _TESTS.format(test="wilcoxon"),
        "win_rate": "lmemtest.outperforming(runs)",
    },
    "plots": {
        "bar": "plots.emmeans_plot(means), with an interval beside each mean",
        "barplot": "plots.emmeans_plot(means), with an interval beside each mean",
        "learning_curves": "plots.anytime_plot(lmemtest.anytime(runs))",
        "line": "plots.anytime_plot(lmemtest.anytime(runs))",
        "scatter": "plots.score_distributions_plot(lmemtest.score_distributions(runs))",
        "variance_study_plot": "plots.variance_sources_plot(study)",
    },
    "Result": {
        "best": "result.to_frame(), or result.sentences()",
        "describe": "result.summary()",
        "dataframe": "result.to_frame()",
        "print": "print(result)",
        "report": "result.save('report.html')",
        "results": "result.to_frame()",
        "savefig": "result.save('figure.png'), or result.plot().figure.savefig('figure.pdf')",
        "show": "print(result), or result.plot()",
        "winner": "result.sentences()",
    },
    "benchmark_information": {"ranking": "lmemtest.benchmark_information(runs, rank_benchmarks=True)"},
    "Comparisons": {
        "cd_diagram": "pairs.decisions().plot()",
        "contrasts": "pairs.to_frame(), or pairs.estimates.contrast(...) for other contrasts",
        "groups": "pairs.decisions().groups",
        "letters": "pairs.decisions().letters",
        "significant": "pairs.decisions().significant",
        "summary_frame": "pairs.to_frame()",
    },
    "Estimates": {
        "dunnett": "means.against(control)",
        "effect_size": "lmemtest.rank(runs, effect_size='standardised')",
        "letters": "means.decisions().letters",
        "test": "means.pairs(), means.against(control), means.joint()",
        "tukey": "means.pairs(adjust='tukey')",
    },
    "Ranking": {
        "p_values": "ranking.pairs['p_value']",
        "pvalues": "ranking.pairs['p_value']",
        "best": "ranking.levels[0], and ranking.sentences() on whether it is significantly best",
        "winner": "ranking.levels[0], and ranking.sentences() on whether it is significantly best",
    },
    "Analysis": {
        "best": "analysis.headline(), and analysis.decisions.levels[0]",
        "coefficients": "analysis.fit.params",
        "p_values": "analysis.pairs.to_frame()['p_value']",
        "pvalues": "analysis.pairs.to_frame()['p_value']",
        "report": "analysis.save('report.html')",
        "results": "analysis.to_frame(), analysis.pairs",
        "savefig": "analysis.save('figure.png')",
        "show": "print(analysis), or analysis.save('report.html')",
        "winner": "analysis.headline(), and analysis.decisions.levels[0]",
        "contrasts": "analysis.pairs",
        "warnings": "analysis.check",
    },
    "LmmFit": {
        # functions in R, which people call: a value cannot be called
        "AIC": "fit.aic, without brackets",
        "BIC": "fit.bic, without brackets",
        "coef": "fit.params, without brackets",
        "fixef": "fit.params, without brackets",
        "logLik": "fit.llf, without brackets",
        "components": "lmemtest.VarianceComponents.of(fit)",
        "blup": "fit.conditional_modes(group), for instance fit.conditional_modes('benchmark')",
        "compare": "lmemtest.glrt(smaller, larger)",
        "ci": "fit.profile(), and fit.emmeans(...) for means",
        "confint": "fit.profile(), and fit.emmeans(...) for means",
        "contrast": f"{_MEANS}.contrast(...)",
        "cov_re": "fit.covariances, fit.varcorr",
        "deviance": "-2 * fit.llf",
        "drop1": "fit.ranova(), fit.anova()",
        "f_test": "fit.anova(), fit.joint_tests()",
        "lr_test": "lmemtest.glrt(smaller, larger)",
        "lrt": "lmemtest.glrt(smaller, larger)",
        "pairs": f"{_MEANS}.pairs()",
        "plot_residuals": "fit.diagnose().plot()",
        "posthoc": f"{_MEANS}.pairs()",
        "rsquared": "fit.diagnose().explained.r2_marginal, r2_conditional",
        "step": "lmemtest.select_model(runs)",
        "t_test": f"{_MEANS}.contrast(...)",
        "wald_test": "fit.anova(), fit.joint_tests()",
    },
    "contrast": dict.fromkeys(("control", "ref"), "means.against(control)"),
    "fit_lmm": {
        **dict.fromkeys(("family", "link", "trials"), "lmemtest.fit_glmm(formula, data, family=..., trials=...)"),
        "groups": "a random effect into the formula: score ~ algorithm + (1 | benchmark)",
        "offset": "offset(column) into the formula",
    },
    "diagnose": dict.fromkeys(
        ("influence", "specs"),
        "fit.diagnose() without it: the influence of single groups is a question to linear models; of others, fit "
        "again without the rows in question",
    ),
    "fit_glmm": {
        **dict.fromkeys(
            ("dispersion", "residual_variance"),
            "a random effect into the formula instead, such as (1 | task:model): the variance of answers and counts "
            "follows from their mean, and family='negative-binomial' has one of its own",
        ),
        "groups": "a random effect into the formula: right ~ model + (1 | task)",
        "nAGQ": "method='laplace' (nAGQ=1) or method='quadrature' (100 nodes)",
        "offset": "offset(log(column)) into the formula",
        "reml": "method='pseudo' (restricted) or method='laplace' (maximum likelihood)",
        "weights": "trials= with the column of the number of answers behind each number of successes",
    },
    "Runs": {
        "fit": "lmemtest.fit_lmm(formula, runs)",
        "groupby_algorithm": "runs.to_frame().groupby(runs.algorithm)",
        "iloc": "runs.to_frame().iloc",
        "loc": "runs.to_frame().loc",
        "plot": "lmemtest.score_distributions(runs).plot(), lmemtest.anytime(runs).plot()",
        "report": "lmemtest.analyze(runs).save('report.html')",
        "to_csv": "runs.to_frame().to_csv(path)",
    },
}

# Arguments by other names, and the ones that they may mean, in this order.
_DIRECTION = ("direction", "direction='maximize' or direction='minimize'")
ARGUMENTS: dict[str, tuple[str, str] | str] = {
    **dict.fromkeys(("metric", "y", "value", "loss", "measure", "response", "target", "outcome"), "score"),
    **dict.fromkeys(
        ("maximize", "maximise", "minimize", "minimise", "higher_is_better", "lower_is_better"), _DIRECTION
    ),
    **dict.fromkeys(("order", "ascending", "goal", "mode", "greater_is_better"), _DIRECTION),
    **dict.fromkeys(("algo", "model", "system", "learner", "optimizer", "method_column", "clf"), "algorithm"),
    **dict.fromkeys(("dataset", "task", "problem", "instance", "block", "environment"), "benchmark"),
    **dict.fromkeys(("repeat", "repetition", "fold", "run", "trial", "replicate"), "seed"),
    **dict.fromkeys(("epoch", "step", "fidelity", "iteration", "time"), "budget"),
    **dict.fromkeys(("suite", "domain", "groups", "cluster"), "family"),
    **dict.fromkeys(("significance", "significance_level"), "alpha"),
    **dict.fromkeys(("level", "conf_level", "confidence"), ("alpha", "alpha=1 - level")),
    **dict.fromkeys(("correction", "p_adjust", "posthoc", "multiple_testing"), "adjust"),
    **dict.fromkeys(("random_state", "random_seed"), "rng"),
    **dict.fromkeys(("nsamples", "n_boot", "n_bootstrap", "reps"), "n_draws"),
    **dict.fromkeys(("REML",), "reml"),
    **dict.fromkeys(("effsize",), "effect_size"),
    **dict.fromkeys(("baseline", "reference", "ref"), "control"),
}


class Guided:
    """A class whose objects answer a guessed name with the right one."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker must see the names that there are

        def __getattr__(self, name: str) -> Any:
            return guess(self, name)


def sought(package: str, name: str, names: Iterable[str]) -> Any:
    """What a name that a package lacks stands for; an AttributeError that says what to write, if it is no synonym."""
    if name.startswith("_"):  # no name of anybody's: Python and its tools ask every object for some
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    short = package.rpartition(".")[2]
    synonyms, advice, names = SYNONYMS[short], dict(ADVICE[short]), list(names)
    place = synonyms.get(name)
    if isinstance(place, str):
        module, _, attribute = place.rpartition(":")
        return getattr(importlib.import_module(f"lmemtest.{module}" if module else package), attribute)
    if f"{name}_plot" in names:
        advice[name] = f"{short}.{name}_plot"
    raise AttributeError(f"{package} has no {name!r}.{_instead(advice, name, [*names, *synonyms])}")


def guess(owner: Any, name: str) -> Any:
    """What a name that an object lacks stands for, likewise."""
    kind = type(owner)
    if name.startswith("_") or hasattr(kind, name):  # a property that failed: its own error
        return object.__getattribute__(owner, name)
    named = owner.question if kind.__name__ == "Answer" else kind.__name__
    classes = [*dict.fromkeys((named, *(cls.__name__ for cls in kind.__mro__)))]
    for cls in classes:
        target = SYNONYMS.get(cls, {}).get(name)
        if target is not None:
            return target(owner) if callable(target) else getattr(owner, target)
        if name in ADVICE.get(cls, {}):
            break
    raise _Lacking(owner, name, named, classes)


class _Lacking(AttributeError):
    """Says what to write instead when it is read: nobody reads that of an object that was only asked what it has."""

    def __init__(self, owner: Any, name: str, named: str, classes: list[str]) -> None:
        super().__init__(name=name, obj=owner)
        self.named, self.classes = named, classes

    def __str__(self) -> str:
        owner, name = self.obj, str(self.name)
        advice: dict[str, str] = {}
        names = [other for other in dir(owner) if not other.startswith("_")]
        for cls in self.classes:
            names += SYNONYMS.get(cls, {})
            advice = {**ADVICE.get(cls, {}), **advice}
        advice = advice if name in advice else {**advice, **_further(owner, name)}
        return f"{self.named} has no {name!r}.{_instead(advice, name, names)}"

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)


_Lacking.__module__, _Lacking.__qualname__ = "builtins", "AttributeError"  # as a traceback names it


def _further(owner: Any, name: str) -> dict[str, str]:
    """What else a name can be: a column of the table, or a function of the package."""
    package = importlib.import_module("lmemtest")
    if hasattr(type(owner), "roles") and name in package.__all__ and inspect.isfunction(getattr(package, name)):
        return {name: f"lmemtest.{name}(runs)"}
    wanted = re.sub("[^a-z0-9]", "", name.lower()).removesuffix("s")
    wanted = {"pval": "pvalue", "p": "pvalue", "ci": "cilow", "confint": "cilow"}.get(wanted, wanted)
    columns = [str(column) for column in owner.to_frame().columns] if hasattr(type(owner), "to_frame") else []
    columns_alike = [
        column for column in columns if re.sub("[^a-z0-9]", "", column.lower()).removesuffix("s") == wanted
    ]
    return {name: f"to_frame()[{columns_alike[0]!r}], a column of its table"} if columns_alike else {}


def _instead(advice: dict[str, str], name: str, names: list[str]) -> str:
    """A sentence on what to write instead of a name."""
    if name in advice:
        return f" Write {advice[name]}."
    plain = {other.lower(): other for other in [*names, *advice]}
    alike = difflib.get_close_matches(name.lower(), plain, n=1, cutoff=_ALIKE)
    if not alike:
        return " dir() lists the names that there are."
    replacement = plain[alike[0]]
    return f" Write {advice[replacement]}." if replacement in advice else f" Did you mean {replacement!r}?"


def guided(function: F) -> F:
    """A function that answers an argument it does not know with the one that was meant.

    What it takes as ``**roles`` are the roles of the columns of a table: its signature lists them. A table whose
    columns lack roles is answered with those that they probably have.
    """
    signature = _with_roles(inspect.signature(function))

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError:
            wrong = _unknown(call, options) or _lacking(call, args, options)
            if wrong is None:
                raise
            raise TypeError(wrong) from None
        except ArgumentError as error:
            if error.lacks_roles is None:
                raise
            without_roles = error
        raise importlib.import_module("lmemtest.bench.data.guessing").with_guess(without_roles)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def _with_roles(signature: inspect.Signature) -> inspect.Signature:
    *others, last = signature.parameters.values()
    if (last.name, last.kind) != ("roles", last.VAR_KEYWORD):
        return signature
    new = [name for name in ROLES if name not in signature.parameters]
    roles = [inspect.Parameter(name, last.KEYWORD_ONLY, default=None) for name in new]
    return signature.replace(parameters=[*others, *roles])


_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def called(package: str, instead: str) -> None:
    """Let a module that somebody calls say which function was meant."""

    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError(f"{package} is a module. Write {instead}.")

    module = sys.modules[package]
    module.__class__ = type("module", (type(module),), {"__call__": staticmethod(refuse)})


def guided_arguments(cls: type) -> None:
    """Let the constructor of a class answer likewise."""
    cls.__init__ = guided(cls.__init__)  # type: ignore[misc]


def _lacking(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> str | None:
    """What to say of arguments that are missing or too many, with a call that works; None if they fit."""
    from lmemtest.core.words import joined

    signature = inspect.signature(function)
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        why = str(error)
    else:
        return None
    given = signature.bind_partial(*args[: len(signature.parameters)], **options).arguments if "many" not in why else {}
    lacking = [
        f"{name}=" if parameter.kind is parameter.KEYWORD_ONLY else name
        for name, parameter in signature.parameters.items()
        if name not in given and parameter.default is parameter.empty and parameter.kind not in _ANY
    ]
    owner = function.__qualname__.removesuffix(".__init__")
    call = re.compile(rf"(?<![\w.])(?:\w+\.)*{re.escape(owner.rpartition('.')[2])}\(.*")
    lines = re.findall(r"^\s*>>> (.*)$", function.__doc__ or "", re.MULTILINE)
    example = next((found[0] for line in lines if (found := call.search(line)) is not None), "")
    what = f"needs {joined(lacking)}" if "many" not in why else "has too many arguments without a name"
    path = next((str(given) for given in args[1:] if isinstance(given, (str, os.PathLike))), None)
    if owner.rpartition(".")[2].startswith("to_") and "many" in why and path is not None:
        return f"{owner}() gives the text. To write it to a file: save({path!r})."
    return f"{owner}() {what}.{f' For instance: {example}' if example else ''}"


def _unknown(function: Callable[..., Any], options: dict[str, Any]) -> str | None:
    """What to say of the first argument that a function does not have; None if it has them all."""
    from lmemtest.core.words import suggest

    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    wrong = next((name for name in options if name not in parameters), None)
    if wrong is None:
        return None
    meant = ARGUMENTS.get(wrong, "")
    name, text = meant if isinstance(meant, tuple) else (meant, meant)
    hint = f" It is {text} here." if name in parameters else suggest(wrong, parameters)
    owner = function.__qualname__.removesuffix(".__init__")
    if wrong in (advice := ADVICE.get(owner, {})):
        hint = f" Write {advice[wrong]}."
    names = ", ".join(name for name in parameters if name != "self")
    return f"{owner}() has no argument {wrong!r}.{hint or f' Its arguments: {names}.'}"
