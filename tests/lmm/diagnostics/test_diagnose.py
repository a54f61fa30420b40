"""`diagnose`: all checks in one table."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refusal, refuses
from scipy.stats import binomtest

import lmemtest as lt
from lmemtest.core.verdicts import worst
from lmemtest.errors import ArgumentError, DesignError, UnknownColumnError
from lmemtest.lmm.diagnostics import diagnose
from lmemtest.lmm.diagnostics.draws import simulated_p


def test_the_table_has_every_check_of_a_true_model(clean):
    table = clean.to_frame()
    assert list(table.columns) == ["check", "subject", "found", "value", "p_value", "severity", "advice"]
    assert table["check"].to_list() == [
        *["normality"] * 4,
        *["scale"] * 4,
        "advantages",
        "bounds",
        *["groups"] * 3,
        "convergence",
        "collinearity",
        "explained",
    ]
    assert set(table["severity"]) == {"fine"}
    assert clean.severity == "fine"
    assert (table["advice"].str.len() > 10).all()
    assert clean.n_draws == 199
    assert len(clean.residuals) == len(clean.fitted) == 288


def test_every_part_shows_itself(clean):
    for part in (clean, clean.normality, *clean.normality.shapes, *clean.scale, clean.advantages, clean.explained):
        assert part.to_frame() is not None
        assert "<table" in part._repr_html_()
        assert part.summary()
    for part in (clean.collinearity, clean.groups, clean.bounds):
        assert part.summary()
    assert "16 fine. p-values are against 199 tables" in clean.summary()


def test_a_seed_makes_it_reproducible(clean_fit, clean):
    again = diagnose(clean_fit, rng=1, influence=False)
    generator = diagnose(clean_fit, rng=np.random.default_rng(1), influence=False)
    other = diagnose(clean_fit, rng=2, influence=False)
    assert again.to_frame().equals(clean.to_frame())
    assert generator.to_frame().equals(clean.to_frame())
    assert not other.to_frame().equals(clean.to_frame())


def test_influence_is_computed_for_single_columns(make):
    table = make.table(np.random.default_rng(1), benchmarks=5, seeds=4)
    fit = lt.fit_lmm(make.formula, table)
    found = diagnose(fit, rng=1)
    lines = [c for c in found.checks if c.kind == "influence"]
    assert [(c.subject, c.severity) for c in lines] == [("of each benchmark", found.influence[0].severity)]
    assert lines[0].advice == " ".join(found.influence[0].sentences())
    assert lines[0].message.startswith("largest Cook's distance")
    by_seed = diagnose(fit, rng=1, influence="seed")
    assert [r.group for r in by_seed.influence] == ["seed"]
    both = diagnose(fit, rng=1, influence=["benchmark", "seed"])
    assert [r.group for r in both.influence] == ["benchmark", "seed"]


def test_influence_that_needs_a_choice_says_so(make):
    table = make.table(np.random.default_rng(1), benchmarks=5, seeds=4)
    table["prior"] = np.where(table["seed"] % 2, "good", "bad")
    fit = lt.fit_lmm("loss ~ algorithm * prior + (1|benchmark)", table)
    line = next(c for c in diagnose(fit, rng=1).checks if c.kind == "influence")
    assert (line.message, line.severity) == ("not computed", "note")
    assert "specs" in line.advice
    chosen = next(c for c in diagnose(fit, rng=1, specs="algorithm").checks if c.kind == "influence")
    assert chosen.message != "not computed"


def test_a_model_without_random_effects_works(make):
    fit = lt.fit_lmm("loss ~ algorithm", make.table(np.random.default_rng(1), benchmarks=1))
    found = diagnose(fit, rng=1)
    assert [s.subject for s in found.normality.shapes] == ["residuals"]
    assert found.influence == ()
    assert found.explained.r2_conditional == found.explained.r2_marginal


def test_singular_and_rank_deficient_models_work(fitted):
    for data, formula in (
        ("rank_deficient", "y ~ a * b + x + (a|g)"),
        ("Dyestuff2", "Yield ~ 1 + (1|Batch)"),
        ("categorical_slopes", "y ~ f * x + (f+x|g)"),
        ("bench_prior", "y ~ algorithm * prior + (prior|benchmark) + (1|seed)"),
    ):
        found = diagnose(fitted(data, formula), rng=1, influence=False)
        assert np.isfinite(found.residuals).all()
        assert found.summary()


def test_a_model_without_fixed_effects_works(make):
    fit = lt.fit_lmm("loss ~ 0 + (1|benchmark)", make.table(np.random.default_rng(1)))
    found = diagnose(fit, rng=1, influence=False)
    assert len(found.collinearity.table) == 0
    assert found.explained.r2_marginal == 0.0


def test_other_likelihood_and_transformed_scores(make):
    table = make.table(np.random.default_rng(1))
    table["loss"] = np.exp(table["loss"])
    fit = lt.fit_lmm("log(loss) ~ algorithm + (1|benchmark)", table, reml=False)
    assert diagnose(fit, rng=1, influence=False).bounds.table["score"][0] == pytest.approx(
        np.log(table["loss"].min()), rel=1e-9
    )


def test_bad_input_is_named(clean_fit):
    refuses(ArgumentError, r"^fit must be a fitted model, got dict. Fit one with fit_lmm\(...\).$", diagnose, {})
    refuses(ArgumentError, r"^n_draws must be a whole number of at least 99, got 10.$", diagnose, clean_fit, n_draws=10)
    with pytest.raises(ArgumentError, match=r"^influence must be True, False or names of groups, got 3.$"):
        diagnose(clean_fit, influence=3)
    with pytest.raises(UnknownColumnError, match=r"influence names the column 'bench', which is not in the data"):
        diagnose(clean_fit, influence="bench")
    assert refusal(
        lambda: diagnose(lt.fit_lmm("y ~ a", {"y": [1.0, 2.0, 4.0, 3.0], "a": ["p", "q", "r", "r"]})), DesignError
    ) == (
        "fit has 4 rows and 3 fixed effects, which leaves 1 residual degrees of freedom; a diagnosis needs at least 3. "
        "Add more runs, or use fewer fixed effects."
    )


def test_small_helpers():
    assert worst(["note", "fine"]) == "note"
    assert simulated_p(2.0, [1.0, 2.0, 3.0]) == 0.75


@pytest.mark.slow
@pytest.mark.parametrize("design", [(12, 3, 8), (6, 2, 5)])
def test_true_models_seldom_alarm(make, design):
    """Each check of shape and scale says "warning" in about 1 % of the tables at most, whatever the size."""
    rng = np.random.default_rng(5)
    n = 300
    acts: dict[tuple[str, str], int] = {}
    rejected: dict[tuple[str, str], int] = {}
    for _ in range(n):
        fit = lt.fit_lmm(make.formula, make.table(rng, *design), restarts=0)
        for check in diagnose(fit, rng=rng, influence=False).checks:
            key = (check.kind, check.subject)
            acts[key] = acts.get(key, 0) + (check.severity == "warning")
            rejected[key] = rejected.get(key, 0) + (check.p_value <= 0.05)
    for key, count in acts.items():
        assert binomtest(count, n, 0.02, alternative="greater").pvalue > 0.001, key
    for key, count in rejected.items():
        assert binomtest(count, n, 0.05, alternative="greater").pvalue > 0.001, key


@pytest.mark.slow
def test_heavy_tails_are_not_taken_for_different_scales(make):
    rng = np.random.default_rng(6)
    n, rejected = 200, {"by benchmark": 0, "by algorithm": 0}
    for _ in range(n):
        table = make.table(rng, noise=lambda r, m: r.standard_t(5, size=m))
        found = diagnose(lt.fit_lmm(make.formula, table, restarts=0), rng=rng, influence=False)
        for check in found.checks:
            if check.subject in rejected:
                rejected[check.subject] += check.p_value <= 0.05
    for subject, count in rejected.items():
        assert binomtest(count, n, 0.08, alternative="greater").pvalue > 0.001, subject


def test_priorband_sized_fits_are_diagnosed(data_dir):
    import pandas as pd

    table = pd.read_parquet(data_dir / "priorband.parquet")
    fit = lt.fit_lmm("value ~ algorithm + (1|benchmark) + (1|benchmark:algorithm)", table)
    found = diagnose(fit, rng=1, influence=False)
    assert (found.severity, found.n_draws, len(found.residuals)) == ("warning", 99, 86_400)
    by_benchmark = next(s for s in found.scale if s.column == "benchmark")
    assert by_benchmark.ratio > 10
