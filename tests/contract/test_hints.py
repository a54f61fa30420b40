"""Names that people try first: a synonym works, any other guess is told the right name."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import pickle
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from levels import first
from refusals import refusal, refuses
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.core import hints
from lmemtest.core.result import Result
from lmemtest.core.table import Text
from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.lmm.model import LmmFit
from lmemtest.report.analysis import Analysis


@functools.cache
def objects() -> dict[str, Any]:
    """One object of each kind that people ask."""
    rng = np.random.default_rng(1)
    levels = np.array([0.0, 0.0, 1.0])[:, None, None] + rng.normal(size=6)[:, None]
    scores = levels + rng.normal(scale=0.3, size=(3, 6, 3))
    names = {"benchmark": [f"t{i}" for i in range(6)]}
    runs = as_runs(table_of_scores(scores, "algorithm benchmark seed", "loss", **names))
    analysis = lt.analyze(runs)
    return {
        "lt": lt,
        "plots": lt.plots,
        "runs": runs,
        "fit": analysis.fit,
        "means": analysis.means,
        "pairs": analysis.pairs,
        "sep": analysis.decisions,
        "res": analysis,
        "ranking": lt.rank(runs),
    }


# What was typed, and what must come of it: "works", or a word that the answer must hold.
GUESSES = """
lt.outperform: works            lt.outperforming: works          lt.bands: works
lt.friedman_test: nemenyi      lt.emmeans: works                lt.contrast: works
lt.pairs: works                 lt.joint_tests: works            lt.cld: cld
lt.confint: profile             lt.eff_size: outperforming        lt.lmer: works
lt.mixedlm: works               lt.anova: glrt                   lt.friedman: nemenyi
lt.wilcoxon: test='wilcoxon'    lt.nemenyi: test='nemenyi'       lt.iqm: aggregate_scores
lt.probability_of_improvement: improvement                       lt.performance_profile: profiles
lt.leaderboard: works           lt.elo: leaderboard              lt.cd_diagram: works
lt.ttest: test='t'              lt.tukey: test='tukey'           lt.cohen_d: cohen_d
lt.aso: stochastic_order        lt.autorank: compat.autorank     lt.compare: rank
lt.read_csv: read_runs          lt.plot: plots                   lt.ranking: works
lt.lrt: glrt                    lt.ranova: works                 lt.sample_size: works
lt.load_hpo_runs: works         lt.glmer: works                  lt.create_report: analyze
lt.bayesian: rank               lt.benchmark_effect: benchmark_effects                lt.analyse: analyze
lt.fit_lme: fit_lmm             lt.evaluation: evaluate          lt.stochastic_dominance: stochastic_order
lt.variance_components: VarianceComponents                       lt.permutation: permutation_test
lt.run: Runs                    lt.select_models: select_model   lt.similar_benchmarks: works
lt.stability: of='benchmarks'   lt.sensitivity: robustness       lt.normalization_stability: of='algorithms'
lt.rank_algorithms: works       lt.seed_effects: seed_effect     lt.horizons: at(budgets)
lt.a12: outperforming           lt.vargha_delaney: outperforming lt.win_rate: outperforming
lt.collinearity: diagnose       lt.icc: icc                      lt.r2: r2
lt.latex_table: to_latex        means.test: against              fit.plot_residuals: diagnose
plots.heatmap: works            plots.violin: works              plots.boxplot: works
plots.forest: works             plots.critical_difference: works plots.cd_diagramm: cd_diagram
plots.qqplot: works             plots.caterpillar: works         plots.barplot: emmeans_plot
plots.learning_curves: anytime  plots.benchmark_effect: benchmark_effects_plot
fit.pvalues: works              fit.tvalues: works               fit.conf_int: works
fit.resid: works                fit.fittedvalues: works          fit.fitted: works
fit.ranef: works                fit.fixef: params                fit.VarCorr: works
fit.vcov: works                 fit.coef: params                 fit.AIC: aic
fit.logLik: llf                 fit.sigma: works                 fit.r2: works
fit.icc: works                  fit.plot: works                  fit.random_effect: random_effects
fit.to_latex: works             fit.to_csv: works                fit.sentences: works
fit.lsmeans: works              fit.pairs: emmeans               fit.df_resid: works
fit.update: works               fit.isSingular: works            fit.step: select_model
fit.n_obs: nobs                 fit.loglike: works                 fit.summary: works
runs.head: works                runs.df: works                   runs.describe: works
runs.benchmarks: works          runs.groupby: works              runs.shape: works
runs.analyze: lmemtest.analyze  runs.rank: lmemtest.rank         runs.fit: fit_lmm
runs.loc: to_frame              runs.normalise: works            runs.column: columns
pairs.to_latex: works           pairs.to_markdown: works         pairs.to_csv: works
pairs.pvalues: p_value          pairs.p_values: p_value          pairs.conf_int: ci_low
pairs.cld: works                pairs.letters: letters           pairs.to_pandas: works
pairs.show: print               pairs.savefig: save              pairs.contrasts: contrast
means.cld: works                means.dunnett: against           means.tukey: pairs
means.contrasts: contrast       means.to_latex: works            means.compare: comparable
sep.to_latex: works             sep.cld: works                   sep.letter: letters
sep.order: works                sep.cd: works                    sep.significance: significant
res.plot: works                 res.sentences: works             res.ranking: works
res.best: headline              res.report: save                 res.table: works
res.p_values: p_value           res.cd_diagram: works            res.show: print
res.letters: works              res.winner: headline             res.to_df: works
ranking.order: works            ranking.best: levels             ranking.p_values: pairs
ranking.to_latex: works         ranking.report: works        ranking.letters: works
"""
PARSED = re.findall(r"(\w+)\.(\w+): (\S+)", GUESSES)


@pytest.mark.parametrize(("owner", "name", "want"), PARSED, ids=lambda part: str(part))
def test_a_guess_hits_or_is_told_the_right_name(owner, name, want):
    found = objects()[owner]
    if want == "works":
        assert getattr(found, name) is not None
        return
    with pytest.raises(AttributeError) as raised:
        getattr(found, name)
    said, _, advice = str(raised.value).partition("'. ")
    assert said.endswith(f" has no '{name}")
    assert want in advice


def test_there_are_125_guesses_at_least_and_each_table_is_of_something():
    assert len(PARSED) == len(set(PARSED)) >= 125
    kinds = {"lmemtest", "plots", *(cls.__name__ for cls in (Result, LmmFit, Analysis, lt.Runs)), "Comparisons"}
    assert set(hints.SYNONYMS) | set(hints.ADVICE) == {
        *kinds,
        "Estimates",
        "Decisions",
        "Ranking",
        "benchmark_information",
        "contrast",
        "diagnose",
        "fit_lmm",
        "fit_glmm",
    }


def test_groups_of_a_mixed_model_are_written_into_its_formula():
    with pytest.raises(
        TypeError, match=r"^fit_lmm\(\) has no argument 'groups'\. Write a random effect into the formula: "
    ):
        lt.mixedlm("loss ~ algorithm", objects()["runs"], groups="benchmark")


def test_a_family_of_a_linear_model_is_asked_of_the_generalised_one():
    with pytest.raises(TypeError, match=r"^fit_lmm\(\) has no argument 'family'\. Write lmemtest\.fit_glmm\("):
        lt.fit_lmm("loss ~ algorithm", objects()["runs"], family="binomial")


def test_synonyms_are_what_they_lead_to():
    of = objects()
    fit = of["fit"]
    assert lt.outperform is lt.probability_of_outperforming is lt.outperforming
    assert lt.plots.heatmap is lt.plots.benchmark_effects_plot
    assert lt.sample_size is lt.plan
    assert of["means"].cld().letters == of["pairs"].cld().letters == of["means"].decisions().letters
    assert of["ranking"].report() == of["ranking"].paragraph()
    pd.testing.assert_series_equal(fit.pvalues, fit.to_frame().set_index("term")["p_value"])
    assert fit.coefficients is fit.params
    assert fit.df_resid == fit.nobs - fit.rank
    assert fit.sigma == pytest.approx(np.sqrt(fit.scale))
    assert of["runs"].benchmarks == of["runs"].levels("benchmark")
    assert of["res"].sentences() == tuple(of["res"].sentences())
    assert " ".join(of["res"].sentences()) == of["res"].headline()
    pd.testing.assert_frame_equal(lt.emmeans(fit, "algorithm").to_frame(), fit.emmeans("algorithm").to_frame())


@pytest.mark.parametrize("package", ["lmemtest", "plots"])
def test_every_synonym_of_a_package_exists_and_hides_no_module(package):
    owner = lt if package == "lmemtest" else lt.plots
    for name in hints.SYNONYMS[package]:
        assert callable(getattr(owner, name))
        assert name not in owner.__all__
        assert importlib.util.find_spec(f"{owner.__name__}.{name}") is None


def test_what_the_advice_names_exists():
    """Each call of the package that a message shows is one that there is."""
    for advice in hints.ADVICE.values():
        for text in advice.values():
            for path in re.findall(r"lmemtest((?:\.\w+)+)\(", text):
                functools.reduce(getattr, path.strip(".").split("."), lt)
            for method in re.findall(r"fit\.(\w+)", text):
                assert hasattr(LmmFit, method), text
            for method in re.findall(r"analysis\.(\w+)", text):
                assert hasattr(Analysis, method) or method in inspect.signature(Analysis).parameters, text


def test_an_unknown_name_says_where_the_names_are_and_asks_nothing_of_private_ones():
    with pytest.raises(AttributeError, match=r"^lmemtest has no 'qwertz'\. dir\(\) lists the names that there are\.$"):
        lt.qwertz  # noqa: B018
    runs = objects()["runs"]
    with pytest.raises(AttributeError, match=r"^Runs has no 'qwertz'\. dir"):
        runs.qwertz  # noqa: B018
    for found in (lt, lt.plots, runs, objects()["fit"], objects()["res"]):
        assert not hasattr(found, "_ipython_canary_method_should_not_exist_")
    alone = lt.Runs({"a": ["x", "y"] * 3, "s": range(6)}, score="s", direction="minimize", algorithm="a")
    with pytest.raises(AttributeError, match="These runs have no benchmark: no column was given that role"):
        alone.benchmarks  # noqa: B018


def test_what_an_object_lacks_is_sought_when_it_is_read_and_travels(monkeypatch):
    """An object that is only asked what it has builds no sentence."""
    runs = objects()["runs"]
    with pytest.raises(AttributeError) as lacking:
        runs.to_cvs  # noqa: B018
    travelled = pickle.loads(pickle.dumps(lacking.value))
    assert (type(travelled), str(travelled)) == (AttributeError, str(lacking.value))
    assert traceback.format_exception_only(lacking.value)[0].startswith("AttributeError: Runs has no 'to_cvs'. ")
    monkeypatch.setattr(hints, "_instead", None)  # what writes the sentence
    assert not hasattr(runs, "to_cvs")


def test_the_error_of_a_property_is_its_own():
    class Broken(hints.Guided):
        @property
        def half(self) -> int:
            return [].nothing

    with pytest.raises(AttributeError, match="'list' object has no attribute 'nothing'"):
        Broken().half  # noqa: B018


def test_what_could_be_pickled_still_can():
    for name in ("fit", "runs"):
        assert repr(pickle.loads(pickle.dumps(objects()[name]))) == repr(objects()[name])
    assert pickle.loads(pickle.dumps(lt.rank)) is lt.rank


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda of: lt.lmm("loss ~ algorithm", of["runs"]), TypeError, r"is a module\. Write lmemtest\.fit_lmm\("),
        (lambda of: of["ranking"].to_latex("t.tex"), TypeError, r"To write it to a file: save\('t\.tex'\)\.$"),
        (lambda of: of["res"].to_html("report.html"), TypeError, r"To write it to a file: save\('report\.html'\)\.$"),
        (lambda of: lt.pairs(of["runs"]), ArgumentError, r"^pairs takes means, .* got Runs\. .*analyze\(runs\)\.pairs"),
        (lambda of: lt.contrast(of["fit"], "pairwise"), ArgumentError, r"^contrast takes means, .* got LmmFit\."),
        (lambda of: of["means"].contrast("trt.vs.ctrl", ref="A"), TypeError, r"'ref'\. Write means\.against\(contr"),
        (lambda of: of["fit"].bootstrap(20), ArgumentError, r"^statistic must .* For 20 tables write n_draws=20\.$"),
    ],
)
def test_a_call_that_leads_nowhere_says_what_was_meant(call, error, text):
    refuses(error, text, call, objects())


def test_the_variances_can_be_called_as_in_r():
    fit = objects()["fit"]
    pd.testing.assert_frame_equal(fit.VarCorr(), fit.varcorr)


# ----------------------------------------------------------------------------------------------------- arguments

DATA = {"A": [0.9, 0.8, 0.7, 0.9, 0.6], "B": [0.8, 0.7, 0.7, 0.8, 0.5], "C": [0.5, 0.6, 0.4, 0.6, 0.3]}
DIRECTION = "It is direction='maximize' or direction='minimize' here."


@pytest.mark.parametrize(
    ("function", "argument", "hint"),
    [
        ("analyze", "metric", "It is score here."),
        ("analyze", "y", "It is score here."),
        ("analyze", "maximize", DIRECTION),
        ("analyze", "higher_is_better", DIRECTION),
        ("analyze", "dataset", "It is benchmark here."),
        ("analyze", "benchmarks", "Did you mean 'benchmark'?"),
        ("Runs", "metric", "It is score here."),
        ("Runs", "order", DIRECTION),
        ("rank", "order", DIRECTION),
        ("rank", "random_state", "It is rng here."),
        ("rank", "correction", "It is adjust here."),
        ("evaluate", "metric", "It is score here."),
        ("check", "significance", "It is alpha here."),
        ("rank", "level", "It is alpha=1 - level here."),
        ("outperforming", "conf_level", "It is alpha=1 - level here."),
    ],
)
def test_an_argument_by_another_name_is_told_the_right_one(function, argument, hint):
    said = refusal(lambda: getattr(lt, function)(DATA, **{argument: "descending"}), TypeError)
    assert said == f"{function}() has no argument {argument!r}. {hint}"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lt.rank(), "rank() needs data. For instance: rank("),
        (lambda: lt.power(DATA), "power() needs effect=, n_benchmarks= and n_seeds=. For instance: power("),
        (lambda: lt.mcnemar(DATA, 2), "mcnemar() has too many arguments without a name. For instance: lt.mcnemar("),
    ],
)
def test_arguments_that_are_missing_or_too_many_are_told_with_a_call(call, words):
    assert refusal(call, TypeError).startswith(words)


def test_names_that_tools_of_python_ask_for_are_looked_for_no_further():
    assert refusal(lambda: lt.__wrapped__, AttributeError) == "module 'lmemtest' has no attribute '__wrapped__'"


def test_other_type_errors_are_left_alone():
    refuses(TypeError, "unsupported operand", hints.guided(lambda number: number + "1"), 1)
    assert list(inspect.signature(lt.Runs).parameters)[:3] == ["frame", "score", "direction"]


def test_rank_knows_the_method_of_a_test():
    want = lt.rank(DATA, "frequentist", test="wilcoxon", direction="maximize").pairs
    for asked in ({"test": "wilcoxon"}, {"method": "wilcoxon"}):
        pd.testing.assert_frame_equal(lt.rank(DATA, direction="maximize", **asked).pairs, want)
    nemenyi = lt.rank(DATA, "nemenyi", direction="maximize")
    assert (nemenyi.method, nemenyi.test) == ("frequentist", "nemenyi")
    assert lt.rank(DATA, "friedman", direction="maximize").test == "nemenyi"
    assert lt.rank(DATA, test="hierarchical", direction="maximize", n_draws=100, rng=0).method == "bayesian"
    assert refusal(lambda: lt.rank(DATA, "lmem", test="wilcoxon", direction="maximize"), ArgumentError) == (
        "test='wilcoxon' belongs to method='frequentist'; the tests of 'lmem' are auto. Name one of them, or leave out "
        "method."
    )


# --------------------------------------------------------------------------------------------- one door for each


@pytest.mark.parametrize("name", first(["fit", "means", "pairs", "sep", "ranking", "res"], 5))
def test_every_result_is_written_in_every_way(name, tmp_path):
    found = objects()[name]
    assert r"\begin{tabular}" in found.to_latex()
    assert "| ---" in found.to_markdown()
    assert "<table" in found.to_html()
    assert found.to_text()
    path = tmp_path / "table.csv"
    text = found.to_csv(path)
    assert path.read_text(encoding="utf-8") == text == found.to_frame().to_csv(index=False)
    refuses(ArgumentError, r"must end in one of \.csv", found.to_csv, tmp_path / "table.html")
    assert isinstance(found.sentences(), tuple)


@pytest.mark.parametrize("name", ["fit", "means", "pairs", "sep", "res", "ranking", "runs"])
def test_a_summary_shows_itself(name):
    found = objects()[name].summary()
    assert isinstance(found, Text)
    assert repr(found) == str(found)
    assert "\n" in repr(found)
    assert "<table" in found._repr_html_()
    assert pickle.loads(pickle.dumps(found))._repr_html_() == found._repr_html_()
    assert Text("a < b")._repr_html_() == "<pre>a &lt; b</pre>"


def test_a_diagram_takes_whatever_holds_decisions():
    of = objects()
    want = [text.get_text() for text in lt.plots.cd_diagram(of["sep"]).texts]
    for name in ("res", "pairs"):
        given = of[name]
        assert [text.get_text() for text in lt.plots.cd_diagram(given).texts] == want
    assert lt.plots.cd_diagram(of["means"]).texts
    refuses(ArgumentError, "decisions must be", lt.plots.cd_diagram, of["fit"])


def test_runs_have_a_length_and_columns():
    runs = objects()["runs"]
    assert len(runs) == runs.n_rows == 54
    pd.testing.assert_series_equal(runs["loss"], runs.to_frame()["loss"])
    with pytest.raises(UnknownColumnError, match="'los'"):
        runs["los"]


def test_hints_cost_nothing_before_they_are_needed():
    program = (
        "import sys, lmemtest\n"
        "assert 'lmemtest.core.hints' not in sys.modules and 'numpy' not in sys.modules\n"
        "try: lmemtest.report\n"  # a module once it is imported
        "except AttributeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "lmemtest has no 'report'. Write lmemtest.analyze(runs).save('report.html').\n"


def _takes_alpha() -> list[Callable[..., Any]]:
    functions = [getattr(lt, name) for name in lt.__all__ if inspect.isfunction(getattr(lt, name))]
    functions += [lt.emmeans, lt.emtrends, lt.pairs, lt.contrast, lt.leaderboard, lt.bootstrap, lt.random_effects]
    return [function for function in functions if "alpha" in inspect.signature(function).parameters]


@pytest.mark.parametrize("function", _takes_alpha(), ids=lambda function: function.__name__)
def test_a_level_of_intervals_is_answered_with_alpha(function):
    refuses(TypeError, r"has no argument 'level'\. It is alpha=1 - level here", function, level=0.9)
