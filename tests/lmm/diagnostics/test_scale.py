"""Residual scales by level: statistics, verdicts, one cause."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.core.caller import on_command_line
from lmemtest.lmm.diagnostics import diagnose
from lmemtest.lmm.diagnostics.scale import extremes, layard, levene


def sds(scale):
    return scale.table["relative_sd"].to_numpy()


def scale_by(diagnosis, column):
    return next(s for s in diagnosis.scale if s.column == column)


def test_without_kurtosis_the_ratio_is_bartletts_of_scipy_but_for_its_correction():
    from scipy import stats

    rng = np.random.default_rng(1)
    samples = [rng.normal(size=n) * s for n, s in ((10, 1.0), (15, 2.0), (8, 0.7))]
    df = np.array([9.0, 14.0, 7.0])
    squares = np.array([((x - x.mean()) ** 2).sum() for x in samples])
    correction = 1.0 + ((1 / df).sum() - 1 / df.sum()) / (3 * (len(df) - 1))
    assert layard(squares, df, 0.0) == approx(stats.bartlett(*samples).statistic * correction)
    assert layard(squares, df, 4.0) == approx(layard(squares, df, 0.0) / 3.0)


def test_levene_is_an_f_statistic_of_absolute_values():
    from scipy import stats

    rng = np.random.default_rng(1)
    samples = [rng.normal(size=n) * s for n, s in ((10, 1.0), (15, 2.0), (8, 0.7))]
    n = np.array([10.0, 15.0, 8.0])
    sums = np.array([(x**2).sum() for x in samples]), np.array([np.abs(x).sum() for x in samples]), n, 0.0
    want = stats.f_oneway(*(np.abs(x) for x in samples)).statistic
    assert levene(sums, n - 1.0, 0.8 * n) == approx(want)


def test_levels_without_degrees_of_freedom_do_not_count():
    squares, df = np.array([10.0, 40.0, 0.0]), np.array([10.0, 10.0, 1.0])
    assert layard(squares, df, 0.0) == approx(layard(squares[:2], df[:2], 0.0))
    assert layard(squares[1:], df[1:], 0.0) == 0.0


def test_sd_is_the_residual_sd_over_residual_degrees_of_freedom(make):
    """In a fixed model each cell of three algorithms loses one degree of freedom."""
    table = make.table(np.random.default_rng(5), benchmarks=4, seeds=10)
    fit = lt.fit_lmm("loss ~ algorithm * benchmark", table)
    found = scale_by(diagnose(fit, rng=1, influence=False, n_draws=999), "benchmark")
    residual = table["loss"] - table.groupby(["benchmark", "algorithm"])["loss"].transform("mean")
    variance = (residual**2).groupby(table["benchmark"]).sum() / 27.0
    assert found.table["df"].to_numpy() == approx(np.full(4, 27.0), rel=4 * np.sqrt(2 / 27 / 999))
    assert sds(found) == approx(np.sqrt(variance / fit.scale).to_numpy(), rel=0.02)
    assert (found.table["ci_low"] < sds(found)).all()
    assert (found.table["ci_high"] > sds(found)).all()


def test_a_true_model_is_fine(clean):
    assert [s.column for s in clean.scale] == ["benchmark", "algorithm", "seed", "fitted value"]
    assert {s.severity for s in clean.scale} == {"fine"}


def test_noisy_benchmarks_are_named_and_modelled(make):
    scales = np.ones(12)
    scales[[2, 5]] = 6.0, 0.2
    table = make.table(np.random.default_rng(3), scales=scales)
    fit = lt.fit_lmm(make.formula, table)
    found = diagnose(fit, rng=1, influence=False)
    by_benchmark = scale_by(found, "benchmark")
    assert (by_benchmark.severity, by_benchmark.p_value) == ("warning", 0.005)
    assert by_benchmark.ratio > 10
    assert by_benchmark.advice == (
        "Scores scatter most in b02, least in b05. Fit with dispersion='benchmark': otherwise the noisiest "
        "decide the result."
    )
    for other in ("algorithm", "seed", "fitted value"):
        assert scale_by(found, other).severity != "warning"
    modelled = diagnose(lt.fit_lmm(make.formula, table, dispersion="benchmark"), rng=1, influence=False)
    assert scale_by(modelled, "benchmark").severity == "fine"
    assert scale_by(modelled, "benchmark").ratio < 1.2


def test_a_dispersion_column_outside_of_the_formula_is_checked(make):
    table = make.table(np.random.default_rng(3))
    table["machine"] = np.where(np.arange(len(table)) % 2, "x", "y")
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table, dispersion="machine")
    assert scale_by(diagnose(fit, rng=1, influence=False), "machine").severity == "fine"


def test_one_cause_is_named_for_what_follows_from_it(make):
    scales = np.exp(np.linspace(-2, 2, 12))
    table = make.table(np.random.default_rng(8), scales=scales, seeds=4)
    table["size"] = np.where(table["benchmark"] < "b06", "small", "large")
    found = diagnose(lt.fit_lmm("loss ~ algorithm + size + (1|benchmark)", table), rng=1, influence=False)
    assert scale_by(found, "benchmark").severity == "warning"
    assert (scale_by(found, "size").severity, scale_by(found, "size").advice) == (
        "note",
        "May follow from the scales by benchmark, which differ most: settle those first, then look again.",
    )


def test_scale_that_grows_with_the_score_suggests_a_logarithm():
    rng = np.random.default_rng(2)
    x = np.tile(np.linspace(0, 2, 100), 4)
    fit = lt.fit_lmm("y ~ x", {"x": x, "y": np.exp(x + 0.3 * rng.normal(size=400))})
    found = scale_by(diagnose(fit, rng=1), "fitted value")
    assert found.severity == "warning"
    assert found.advice.startswith(
        "Scores scatter most in the highest fifth, least in the lowest fifth. Model log(score): there the ratio is 1."
    )
    logged = diagnose(lt.fit_lmm("log(y) ~ x", fit.data), rng=1)
    assert scale_by(logged, "fitted value").severity == "fine"


def test_logarithms_are_not_advised_where_they_do_not_help_or_are_there_already():
    rng = np.random.default_rng(2)
    x = np.tile(np.linspace(0, 2, 100), 4)
    noise = rng.normal(size=400) * np.where(x > 1, 5.0, 1.0)
    for formula, y in (("y ~ x", x + noise), ("y ~ x", 1000 + x + noise), ("log(y) ~ x", np.exp(x + noise))):
        found = scale_by(diagnose(lt.fit_lmm(formula, {"x": x, "y": y}), rng=1), "fitted value")
        assert found.severity != "fine"
        assert "log(score)" not in found.advice


def test_benchmarks_of_unlike_scale_get_the_normalisation_that_was_measured(make):
    table = make.table(np.random.default_rng(3), scales=np.exp(np.linspace(-4, 4, 12)))
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed")
    sentence = scale_by(diagnose(lt.fit_lmm(make.formula, runs), rng=1, influence=False), "benchmark").advice
    after = runs.normalize("minmax").check(rules_only=True).scale_ratio
    assert f"one scale with runs.normalize('minmax'), after which scatter differs {after:.1f}-fold" in sentence
    with on_command_line():
        sentence = scale_by(diagnose(lt.fit_lmm(make.formula, runs), rng=1, influence=False), "benchmark").advice
    assert "Fit with --dispersion benchmark or put scores on one scale with --normalize minmax, after" in sentence


def test_a_level_without_variation_is_named(make):
    table = make.table(np.random.default_rng(3), benchmarks=5, seeds=20)
    table.loc[table["benchmark"] == "b04", "loss"] = 1.5
    found = scale_by(diagnose(lt.fit_lmm("loss ~ algorithm * benchmark", table), rng=1), "benchmark")
    assert found.severity == "warning"
    assert found.ratio == np.inf
    assert found.advice.startswith("No residual variation in b04. Fit with")
    assert found.check.message == "no residual variation in some"


def test_cells_alone_show_scales_too(make):
    table = make.table(np.random.default_rng(3), repeats=6, seeds=3, scales=np.where(np.arange(12) < 6, 1.0, 4.0))
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table)
    rows = scale_by(diagnose(fit, rng=1, influence=False), "benchmark")
    cells = scale_by(diagnose(dataclasses.replace(fit, data=None), rng=1, influence=False), "benchmark")
    assert (rows.severity, cells.severity) == ("warning", "warning")
    assert sds(cells) == approx(sds(rows), rel=0.05)  # the same sums over simulated degrees of freedom


def test_roles_shape_the_advice(make):
    table = make.table(np.random.default_rng(3), algorithms=2, seeds=40)
    table["loss"] *= np.where(table["algorithm"] == "a1", 8.0, 1.0)
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed")
    found = scale_by(diagnose(lt.fit_lmm("loss ~ algorithm", runs), rng=1), "algorithm")
    assert found.advice == (
        "Scores scatter most in a1, least in a0. Fit with dispersion='algorithm': otherwise the noisiest decide the "
        "result."
    )


@pytest.mark.parametrize("ratio", [1.0, 1.7, 3.0])
def test_verdicts_follow_the_ratio(make, ratio):
    table = make.table(np.random.default_rng(3), seeds=200, algorithms=2, benchmarks=2, scales=[1.0, ratio])
    found = scale_by(diagnose(lt.fit_lmm("loss ~ algorithm + benchmark", table), rng=1), "benchmark")
    assert found.severity == {1.0: "fine", 1.7: "note", 3.0: "warning"}[ratio]


@pytest.fixture(scope="module")
def wild():
    """Scores of 20 games whose scales differ by powers of ten, one far noisier than all others."""
    rng = np.random.default_rng(5)
    scales = 10.0 ** rng.uniform(-1, 1, 20)
    scales[5] = 3e4
    rows = [
        (agent, f"game{game}", seed, scales[game] * (0.5 * i + shift[i] + rng.normal()))
        for game in range(20)
        for shift in [rng.normal(0.0, 0.5, 6)]
        for i, agent in enumerate("ABCDEF")
        for seed in range(5)
    ]
    frame = pd.DataFrame(rows, columns=["agent", "game", "seed", "score"])
    runs = lt.Runs(frame, score="score", direction="maximize", algorithm="agent", benchmark="game", seed="seed")
    return runs, diagnose(lt.fit_lmm(lt.recommend(runs).formula, runs), rng=1, influence=False)


def test_check_and_diagnosis_have_one_ratio_and_one_pair_of_extremes(wild):
    runs, found = wild
    check, scale = runs.check(rules_only=True), scale_by(found, "game")
    spread = check.scales.set_index("benchmark")["residual_sd"]
    assert scale.ratio == approx(check.scale_ratio, rel=1e-12)
    assert dict(zip(scale.table["level"], sds(scale) / sds(scale).min(), strict=True)) == approx(
        (spread / spread.min()).to_dict()
    )
    assert scale.severity == "warning"
    assert scale.advice.startswith(f"Scores scatter most in {spread.idxmax()}, least in {spread.idxmin()}.")
    warning = next(finding for finding in check.findings if finding.kind == "score_scale")
    assert repr(spread.idxmax()) in warning.message
    assert repr(spread.idxmin()) in warning.message
    assert scale.table["df"].tolist() == [24.0] * 20


def test_the_figure_of_scales_shows_the_levels_that_the_words_name(wild):
    from lmemtest.plots.diagnosis import MOST_LEVELS, _scale_rows

    scale = scale_by(wild[1], "game")
    drawn = _scale_rows(scale, MOST_LEVELS)
    labels = list(drawn.labels)
    assert len(labels) == MOST_LEVELS
    order = [scale.table["level"][i] for i in np.argsort(sds(scale))]
    assert set(labels) == {*order[:7], *order[-7:]}
    assert order[-1] == "game5"
    assert drawn.axis_label.endswith("The noisiest and quietest 14 of 20 levels")


@pytest.mark.parametrize("most", [2, 3, 13, 14])
def test_extreme_levels_come_from_both_ends(wild, most):
    scale = scale_by(wild[1], "game")
    chosen = extremes(sds(scale), most)
    assert len(chosen) == most
    assert {int(np.argmin(sds(scale))), int(np.argmax(sds(scale)))} <= set(chosen.tolist())
    assert (np.diff(chosen) > 0).all()


def test_scatter_that_a_seed_shares_is_part_of_what_the_model_expects(make):
    """The model is true, so the scatter between seeds is what it says, with the share of the seeds in it."""
    table = make.table(np.random.default_rng(1), benchmarks=30, seeds=20)
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed")
    formula = "loss ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"
    scale = scale_by(diagnose(lt.fit_lmm(formula, runs), rng=1, influence=False), "benchmark")
    assert np.sqrt(np.mean(sds(scale) ** 2)) == approx(1.0, abs=0.05)
    assert scale.severity == "fine"
