"""Tuning curves: rational arithmetic, published levels and curves, quadrature with 30 digits, opda."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special, stats

from lmemtest import tuning
from lmemtest.tuning.distribution import ESTIMATORS, expected_best, order_weights
from lmemtest.tuning.evidence import false_label_rates
from lmemtest.tuning.laws import convolution
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution
from lmemtest.tuning.laws.quadratic import QuadraticDistribution
from lmemtest.tuning.order_statistics import (
    BANDS,
    critical_value,
    crossing_probability,
    highest_density_intervals,
    intervals,
)

from .common import Line, load, relative, suite_module

fit_quiet = tuning.fit
fit_noisy = partial(tuning.fit, law="noisy_quadratic")

ORDER = "tests/tuning/test_order_statistics.py"
CALIBRATED = ("ld_highest_density", "ld_equal_tailed", "ks")


def band_lines() -> list[Line]:
    """Compare crossing probabilities, confidences and critical values."""
    brute, _tests = suite_module("tuning/test_order_statistics.py"), f"{ORDER}::test_"
    probability = Line(
        "probability that a band holds, n up to 48",
        "exact rational arithmetic",
        "",
    )
    for n in (1, 2, 3, 5, 8, 13, 32, 48):
        for method in BANDS:
            for level in (0.05, 0.8, 0.999):
                low, high = intervals(n, method, critical_value(n, band=method, level=level))
                probability.add(crossing_probability(low, high) - float(brute.exact_by_counting(low, high)))
    daniels = Line(
        "the same, limits on a line, n up to 3,000",
        "closed form (Daniels)",
        "",
    )
    for n in (1, 2, 7, 100, 3000):
        for slope in (0.1, 0.5, 0.95):
            daniels.add(crossing_probability(slope * np.arange(1, n + 1) / n, np.ones(n)) - (1.0 - slope))
    met = Line("confidence of calibrated bands, n up to 10,000", "as asked for", "")
    for method in CALIBRATED:
        for n in (3, 48, 700):
            for level in (1e-6, 0.01, 0.4, 0.95, 1 - 1e-6):
                value = critical_value(n, band=method, level=level)
                met.add(crossing_probability(*intervals(n, method, value)) - level)
        value = critical_value(10_000, band=method, level=0.8)
        met.add(crossing_probability(*intervals(10_000, method, value)) - 0.8)
    ks = Line(
        "Kolmogorov-Smirnov half-width, n up to 140",
        "SciPy, kstwo",
        "",
    )
    for n in (2, 5, 48, 140):
        for level in (0.01, 0.5, 0.8, 0.99):
            ks.add(critical_value(n, band="ks", level=level) - stats.kstwo.ppf(level, n))
    levels = Line("levels of LD bands", "second implementation", " rel.")
    for method, n, level, want in brute.CRITICAL_LEVELS:
        levels.add(relative(critical_value(n, band=method, level=level), want))
    return [probability, daniels, met, ks, levels, mass_line(), reach_line()]


def published(test: object) -> list[tuple]:
    """The values in the decorator of a test."""
    (mark,) = (m for m in test.pytestmark if m.name == "parametrize")  # type: ignore[attr-defined]
    return mark.args[1]


def mass_line() -> Line:
    """What highest-density intervals leave out is their level."""
    line = Line("mass outside of highest-density intervals", "incomplete beta function", " rel.")
    for n in (2, 3, 4, 9, 48, 1023, 10_000):
        rank = np.arange(1.0, n + 1.0)
        for level in (1e-12, 0.001, 0.0169, 0.3, 0.99):
            low, high = highest_density_intervals(n, level)
            outside = special.betainc(rank, n + 1 - rank, low) + special.betaincc(rank, n + 1 - rank, high)
            for got in outside:
                line.add(relative(got, level))
    return line


def reach_line() -> Line:
    """Largest k at which both limits say something."""
    line = Line("reach of a band (planner)", "closed form", " rel.")
    for n in (2, 8, 48, 300):
        line.add(relative(tuning.plan(n_scores=n).k_max[0], n * np.log(2) / -np.log(critical_value(n))))
        options = {"band": "ld_equal_tailed", "level": 0.95}
        want = n * np.log(1 / 0.9) / np.log(2 / critical_value(n, **options))
        line.add(relative(tuning.plan(n_scores=n, statistic=0.9, direction="maximize", **options).k_max[0], want))
    return line


def estimator_lines() -> list[Line]:
    """Compare U, V and W with exact fractions, published code and published numbers."""
    brute, _tests = suite_module("tuning/test_estimators.py"), "tests/tuning/test_estimators.py::test_"
    weights = Line("weights of U, V and W", "exact fractions", " rel.")
    for estimator, n, k in brute.DEFINED:
        cumulative = [brute.cumulative(estimator, i, n, k) for i in range(n + 1)]
        for i, got in enumerate(order_weights(n, k, estimator=estimator)):
            exact = float(cumulative[i + 1] - cumulative[i])
            weights.add(got if exact == 0.0 else relative(got, exact))
    code = Line("V", "code of Dodge et al. (2019)", " rel.")
    for k in range(1, 30):
        got = expected_best(brute.SCORES, direction="maximize", k=k).estimate[0]
        code.add(relative(got, brute.allennlp(brute.SCORES, k)))
    return [weights, code, *published_curve_lines()]


def published_curve_lines() -> list[Line]:
    """Compare with numbers of published data, where the data are."""
    brute = suite_module("tuning/test_estimators.py")
    hedwig = Line(
        "U, V and W of the Hedwig trials, six decimals",
        "second implementation",
        "",
    )
    deberta = Line(
        "median curve and band of DeBERTaV3, six decimals",
        "second implementation",
        "",
    )
    folder = os.environ.get("LMEMTEST_DATA")
    if folder:
        for model, k, want in published(brute.test_published_data_give_the_known_numbers):
            scores = brute.hedwig(Path(folder), model)
            for estimator, value in zip(ESTIMATORS, want, strict=True):
                got = expected_best(scores, direction="maximize", k=k, estimator=estimator).estimate[0]
                hedwig.add(got - value)
        rows = pd.read_csv(Path(folder) / "deberta.csv")
        scores = rows.loc[rows["model"] == "DeBERTaV3", "best_matched"].to_numpy()[:48]
        found = tuning.curve(scores, direction="maximize", k=[2, 4, 8]).to_frame()[
            ["band_low", "estimate", "band_high"]
        ]
        want = [[0.881610, 0.901477, 0.904840], [0.901477, 0.904228, 0.905655], [0.903006, 0.905145, 0.906062]]
        for difference in (found.to_numpy() - want).ravel():
            deberta.add(difference)
    return [hedwig, deberta]


def label_line() -> list[Line]:
    """Compare simulated rates of false labels with exact ones for equal laws."""
    line = Line("rates of false labels, 48 trials, 100,000 pairs", "second implementation", "")
    seven = range(1, 8)
    for options, want in (({"portion": 0.0}, (0.335, 0.076, 0.002)), ({}, (0.094, 0.010, 0.0003))):
        got = false_label_rates(48, k=seven, n_draws=100_000, rng=1, **options).rate
        for ours, value in zip(got, want, strict=True):
            line.add(ours - value)
    return [line]


def law_lines() -> list[Line]:
    """Compare the (noisy) quadratic distribution with quadrature of 30 digits and with opda."""
    values = load("opda_parametric")
    digits = Line(
        "noisy quadratic: log density, log cdf, log sf, c up to 10",
        "mpmath, 30 digits",
        "",
    )
    wide = Line("the same, c of 20 and 50", "mpmath, 30 digits", "")
    for case in values["integrals"]:
        z, s, c = np.array([case["z"]]), case["s"], case["c"]
        line = digits if c <= 10 else wide
        for function, name in (
            (convolution.log_density, "log_pdf"),
            (convolution.log_below, "log_cdf"),
            (convolution.log_above, "log_sf"),
        ):
            line.add(function(z, s, c)[0] - case[name])
    smallest = Line(
        "expected best of k of noisy scores",
        "mpmath, nested quadrature",
        "",
    )
    for case in values["expected_smallest"]:
        law = NoisyQuadraticDistribution(0.0, 1.0, case["c"], case["s"], True)
        smallest.add(law.mean_curve(case["k"]) - case["value"])
    witness = Line("noisy quadratic: cdf", "mpmath", "")
    theirs = Line("the same, opda's cdf (not ours)", "mpmath", "")
    for case in values["opda_witness"]:
        law = NoisyQuadraticDistribution(0.0, 1.0, case["c"], case["o"], True)
        witness.add(law.cdf(case["y"]) - case["cdf"])
        theirs.add(case["opda_cdf"] - case["cdf"])
    return [digits, wide, smallest, witness, theirs, *opda_lines()]


def opda_lines() -> list[Line]:
    """Compare curves and fits with opda's."""
    quiet = Line(
        "quadratic: cdf, quantiles, median and mean curves",
        "opda",
        "",
    )
    noisy = Line(
        "noisy quadratic: quantiles, median and mean curves",
        "opda (rounds more)",
        " of 1 + noise",
    )
    for want in load("opda_parametric")["opda"]:
        line, c, o = (noisy if want["o"] else quiet), want["c"], want["o"]
        law = (
            NoisyQuadraticDistribution(0.0, 1.0, c, o, want["convex"])
            if o
            else QuadraticDistribution(0.0, 1.0, c, want["convex"])
        )
        pairs = [(law.ppf(want["q"]), want["ppf"])]
        if not o:
            pairs.append((law.cdf(want["y"]), want["cdf"]))
        for direction, short in (("minimize", "min"), ("maximize", "max")):
            pairs.append((law.quantile_curve(want["k"], direction=direction), want[f"median_{short}"]))
            pairs.append((law.mean_curve(want["k"], direction=direction), want[f"mean_{short}"]))
        for got, theirs in pairs:
            for difference in (np.asarray(got) - np.array(theirs)) / (1.0 + o):
                line.add(difference)
    return [quiet, noisy, fit_line()]


def fit_line() -> Line:
    """How far the objective of a fit is below that of opda's estimates."""
    brute = suite_module("tuning/test_parametric_fit.py")
    line = Line(
        "fits: objective below that of opda's estimates",
        "opda",
        "",
    )
    for want in load("opda_parametric")["opda_fits"]:
        if want["upper"] is None:  # with limits the two maximise other products
            y, convex = np.array(want["y"]), want["convex"]
            fit = fit_noisy if want["noisy"] else fit_quiet
            got = fit(y, direction="minimize" if convex else "maximize")
            theirs = NoisyQuadraticDistribution(want["a"], want["b"], want["c"], want["o"], convex)
            line.add(max(0.0, brute.objective(y, theirs) - got.objective))
    return line


BAND_LINES = (band_lines, estimator_lines, label_line)
LAW_LINES = (law_lines,)
