"""Profile intervals against lme4, closed forms and dualities."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses
from scipy.optimize import brentq, minimize_scalar

import lmemtest as lt
from lmemtest.errors import ArgumentError, EstimationError
from lmemtest.lmm.engine.optimize import default_start
from lmemtest.lmm.engine.profile_path import Path, follow_deviance
from lmemtest.lmm.intervals import profile as module
from lmemtest.lmm.intervals.profile import cut_of, profile

CUT = 1.959963984540054
FEW = (
    "Few levels ({}): the likelihood takes their standard deviations for smaller than they are, and the intervals hold "
    "the truth less often than stated. reml=True comes closer."
)
MODELS = [
    "sleepstudy",
    "sleepstudy_unbalanced",
    "sleepstudy_weights",
    "Dyestuff",
    "Dyestuff2",
    "Penicillin",
    "Pastes",
    "cake",
    "cake_unbalanced",
    "bench_unbalanced",
]


def balanced(a=6, n=5, *, sd=1.5, seed=3):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(a), n)
    return pd.DataFrame({"y": 10 + sd * rng.normal(size=a)[group] + rng.normal(size=a * n), "g": group.astype(str)})


def closed_form_ends(table, *, reml):
    """Ends for the sd of the group and of the residual in a balanced one-way layout, from its two sums of squares."""
    means = table.groupby("g")["y"].mean()
    a, n = len(means), len(table) // len(means)
    within = float(((table["y"] - table["g"].map(means)) ** 2).sum())
    between = float(n * ((means - means.mean()) ** 2).sum())
    b = a - 1 if reml else a

    def deviance(v, s2):
        total = s2 + n * v
        return a * (n - 1) * np.log(s2) + b * np.log(total) + within / s2 + between / total

    s2_hat = within / (a * (n - 1))
    v_hat = (between / b - s2_hat) / n
    assert v_hat > 0
    best = deviance(v_hat, s2_hat)

    def over_residual(sd):
        found = minimize_scalar(lambda s: deviance(sd**2, np.exp(s)), bounds=(-8, 8), options={"xatol": 1e-13})
        return found.fun - best - CUT**2

    def over_group(s):
        found = minimize_scalar(lambda v: deviance(v, s * s), bounds=(0, 1e3), options={"xatol": 1e-13})
        return min(found.fun, deviance(0.0, s * s)) - best - CUT**2

    sd, s = np.sqrt(v_hat), np.sqrt(s2_hat)
    ends = [
        (0.0 if f(1e-12) <= 0 else brentq(f, 1e-12, x, xtol=1e-13), brentq(f, x, 20 * x, xtol=1e-13))
        for f, x in ((over_residual, sd), (over_group, s))
    ]
    return (sd, *ends[0]), (s, *ends[1])


@pytest.mark.daily(5)
@pytest.mark.parametrize("index", range(len(MODELS)), ids=MODELS)
def test_intervals_are_those_of_lme4(index, reference, reference_input):
    """Against the roots of lme4's deviance to 1e-8 of the width, and its splines to their own accuracy."""
    want = reference("profile")["models"][index]
    assert want["data"] == MODELS[index]
    fit = lt.fit_lmm(want["formula"], reference_input(want["data"]), reml=False, weights=want["weights"])
    got = profile(fit).to_frame().set_index(["kind", "group", "name1", "name2"])
    rows = pd.DataFrame(want["parameters"])
    assert len(got) == len(rows)
    for row in rows.itertuples():
        mine = got.loc[(row.kind, row.group, row.name1, row.name2)]
        width = row.high - row.low
        assert mine["estimate"] == approx(row.estimate, abs=2e-9 * width)
        assert mine["ci_low"] == approx(row.low, abs=1e-9 * width)
        assert mine["ci_high"] == approx(row.high, abs=1e-9 * width)
        if row.kind != "fixed" or want["weights"] is None:  # lme4 drops the weights there: an interval of width zero
            assert mine["ci_low"] == approx(row.lme4_low, abs=3e-4 * width)
            assert mine["ci_high"] == approx(row.lme4_high, abs=3e-4 * width)


@pytest.mark.parametrize("reml", [False, True])
@pytest.mark.parametrize("sd", [0.5, 1.5])
def test_balanced_one_way_intervals_have_closed_forms(reml, sd):
    table = balanced(sd=sd)
    got = profile(lt.fit_lmm("y ~ 1 + (1 | g)", table, reml=reml), ["sd", "residual sd"], reml=reml).to_frame()
    want = closed_form_ends(table, reml=reml)
    np.testing.assert_allclose(got[["estimate", "ci_low", "ci_high"]].to_numpy(), want, rtol=1e-7, atol=1e-10)


def test_the_ends_of_a_fixed_effect_are_where_a_likelihood_ratio_test_turns(reference_input):
    data = reference_input("sleepstudy_unbalanced")
    fit = lt.fit_lmm("Reaction ~ Days + (Days | Subject)", data, reml=False)
    row = profile(fit, "Days").to_frame().iloc[0]
    for end in (row["ci_low"], row["ci_high"]):
        moved = data.assign(Reaction=data["Reaction"] - end * data["Days"])
        null = lt.fit_lmm("Reaction ~ 1 + (Days | Subject)", moved, reml=False)
        assert 2 * (fit.llf - null.llf) == approx(CUT**2, abs=1e-8)


def test_a_linear_function_of_one_coefficient_is_that_coefficient(reference_input):
    fit = lt.fit_lmm("Reaction ~ Days + (Days | Subject)", reference_input("sleepstudy"))
    both = profile(fit, "fixed", linear={"slope": [0, 1], "twice": [0, 2], "day 4.5": [1, 4.5]}).to_frame()
    both = both.set_index("name1")[["estimate", "ci_low", "ci_high"]]
    np.testing.assert_allclose(both.loc["slope"], both.loc["Days"], rtol=1e-9)
    np.testing.assert_allclose(both.loc["twice"], 2 * both.loc["Days"], rtol=1e-9)
    assert both.loc["day 4.5", "estimate"] == approx(298.50789, abs=1e-5)
    assert list(profile(fit, linear={"slope": [0, 1]}).to_frame()["kind"]) == ["linear"]


def test_intervals_follow_a_change_of_units_and_of_rows(reference_input):
    data = reference_input("sleepstudy_unbalanced")
    formula = "Reaction ~ Days + (Days | Subject)"
    want = profile(lt.fit_lmm(formula, data)).to_frame()
    shuffled = data.sample(frac=1, random_state=np.random.default_rng(1)).assign(
        Reaction=lambda d: 1e-3 * d["Reaction"], Days=lambda d: 24 * d["Days"]
    )
    got = profile(lt.fit_lmm(formula, shuffled)).to_frame()
    factor = np.array([1e-3, 1e-3 / 24, 1.0, 1e-3, 1e-3, 1e-3 / 24])
    values = ["estimate", "ci_low", "ci_high"]
    np.testing.assert_allclose(got[values].to_numpy(), want[values].to_numpy() * factor[:, None], rtol=2e-6)


def test_an_interval_of_a_slope_does_not_depend_on_where_the_covariate_begins(reference_input):
    """The correlation of intercept and slope is then 0.99999, which a search on the user's scale would not survive."""
    data = reference_input("sleepstudy")
    formula = "Reaction ~ Days + (Days | Subject)"
    want = profile(lt.fit_lmm(formula, data), "sd Days | Subject").to_frame()
    got = profile(lt.fit_lmm(formula, data.assign(Days=data["Days"] + 1000)), "sd Days | Subject").to_frame()
    values = ["estimate", "ci_low", "ci_high"]
    np.testing.assert_allclose(got[values].to_numpy(), want[values].to_numpy(), rtol=1e-5)


def test_intervals_are_nested_in_their_level():
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", balanced())
    wide, narrow = (profile(fit, alpha=alpha).to_frame() for alpha in (0.01, 0.5))
    assert (wide["ci_low"] < narrow["ci_low"]).all()
    assert (narrow["ci_low"] < narrow["estimate"]).all()
    assert (narrow["ci_high"] < wide["ci_high"]).all()


def test_every_group_of_dispersion_has_an_interval(reference_input):
    """Strata of one group each and no random effects: each is a sample of its own, with a closed form."""
    rng = np.random.default_rng(8)
    size = {"p": 8, "q": 15}
    table = pd.concat(
        [pd.DataFrame({"y": (1 + (g == "q")) * rng.normal(size=n), "g": g}) for g, n in size.items()], ignore_index=True
    )
    fit = lt.fit_lmm("y ~ g", table, dispersion="g", reml=False)
    got = profile(fit, "residual sd").to_frame().set_index("name1")
    for g, n in size.items():
        s = table.loc[table["g"] == g, "y"].std(ddof=0)

        def rise(sd, s=s, n=n):
            return 2 * n * np.log(sd / s) + n * ((s / sd) ** 2 - 1) - CUT**2

        want = (s, brentq(rise, 0.2 * s, s, xtol=1e-14), brentq(rise, s, 5 * s, xtol=1e-14))
        np.testing.assert_allclose(got.loc[g, ["estimate", "ci_low", "ci_high"]].astype(float), want, rtol=1e-7)
    labels = profile(lt.fit_lmm("y ~ 1 + (1 | Subject)", _renamed(reference_input), dispersion="half")).labels
    assert labels == ("sd Intercept | Subject", "residual sd | early", "residual sd | late", "Intercept")


def _renamed(reference_input):
    data = reference_input("sleepstudy").rename(columns={"Reaction": "y"})
    return data.assign(half=np.where(data["Days"] < 5, "early", "late"))


# ---------------------------------------------------------------------- boundaries


def test_a_variance_that_zero_explains_as_well_begins_at_zero(reference_input):
    result = profile(lt.fit_lmm("strength ~ 1 + (1 | batch / cask)", reference_input("Pastes"), reml=False), "sd")
    table = result.to_frame().set_index("group")
    assert table.loc["batch", "ci_low"] == 0.0
    assert table.loc["batch:cask", "ci_low"] > 1
    assert result.notes == (
        "Zero is not excluded for sd Intercept | batch: the lower end is 0.",
        FEW.format("batch has 10"),
    )
    at_zero = result.curves[(result.curves["group"] == "batch") & (result.curves["value"] == 0)]
    null = lt.fit_lmm("strength ~ 1 + (1 | batch:cask)", reference_input("Pastes"), reml=False)
    full = lt.fit_lmm("strength ~ 1 + (1 | batch / cask)", reference_input("Pastes"), reml=False)
    assert at_zero["zeta"].iloc[0] ** 2 == approx(2 * (full.llf - null.llf), abs=1e-7)


def test_a_variance_estimated_as_zero_has_an_upper_end_only(reference_input):
    result = profile(lt.fit_lmm("Yield ~ 1 + (1 | Batch)", reference_input("Dyestuff2"), reml=False), "sd")
    row = result.to_frame().iloc[0]
    assert (row["estimate"], row["ci_low"]) == (0.0, 0.0)
    assert row["ci_high"] == approx(2.08405, abs=1e-5)


def test_a_correlation_of_effects_without_variance_is_undefined():
    rng = np.random.default_rng(5)
    g = np.repeat(np.arange(8), 10)
    x = np.tile(np.arange(10.0), 8) - 4.5
    # noise that nearly repeats itself in every group, so that groups differ by less than chance allows for
    y = 0.5 * x + np.tile([1.0, -1.0], 40) * rng.uniform(0.9, 1.1, size=80)
    result = profile(lt.fit_lmm("y ~ x + (x | g)", {"y": y, "x": x, "g": g}, reml=False), ["sd", "corr"])
    table = result.to_frame()
    assert table["estimate"].tolist()[:2] == table["ci_low"].tolist()[:2] == [0.0, 0.0]
    assert (table["ci_high"][:2] > 0).all()
    assert table.loc[2, ["estimate", "ci_low", "ci_high"]].isna().all()
    assert result.notes == (
        "corr Intercept, x | g is undefined: the standard deviation of Intercept and x is estimated as zero.",
        "Zero is not excluded for sd Intercept | g, sd x | g: the lower end is 0.",
        FEW.format("g has 8"),
    )
    assert "corr" not in set(result.curves["kind"])


def test_a_correlation_that_may_be_one_ends_there(reference_input):
    fit = lt.fit_lmm("y ~ f + (f | g)", reference_input("categorical_slopes"), reml=False)
    result = profile(fit, "corr")
    table = result.to_frame().set_index(["name1", "name2"])
    assert table.loc[("f[T.q]", "f[T.r]"), "ci_high"] == 1.0
    assert (table["ci_low"] > -1).all()
    assert result.notes == ("A correlation of 1 is not excluded for corr f[T.q], f[T.r] | g.",)


def test_a_coefficient_that_the_data_do_not_identify_has_no_interval(reference_input):
    fit = lt.fit_lmm("y ~ a * b + (1 | g)", reference_input("rank_deficient"), reml=False)
    dropped = fit.params.index[fit.params.isna()]
    assert len(dropped)
    result = profile(fit, "fixed")
    table = result.to_frame().set_index("name1")
    assert table.loc[dropped, ["estimate", "ci_low", "ci_high"]].isna().all(axis=None)
    assert table.drop(dropped)["ci_low"].notna().all()
    assert f"{dropped[0]} is undefined: the data do not identify it." in result.notes


def test_two_terms_that_say_the_same_are_reported_as_flat(reference_input):
    fit = lt.fit_lmm("y ~ f + (1 + f || g)", reference_input("categorical_slopes"), reml=False)
    result = profile(fit, ["sd", "residual sd"])
    note = next(n for n in result.notes if n.startswith("The likelihood is flat at the estimate of "))
    assert "sd Intercept | g" in note
    assert "residual sd" not in note.split(":")[0]
    assert result.to_frame().set_index("name1").loc["Intercept", "ci_low"] == 0.0


# ---------------------------------------------------------------------- better optima and failures


def _displaced(fit):
    """The fit as if its search had stopped somewhere else."""
    x = default_start(fit.problem, 0.7)
    optim = dataclasses.replace(fit.optim, theta=x, criterion=fit.problem.evaluate(x))
    return dataclasses.replace(fit, optim=optim)


def test_a_better_optimum_is_used_and_reported(reference_input):
    fit = lt.fit_lmm("Reaction ~ Days + (Days | Subject)", reference_input("sleepstudy"), reml=False)
    result = profile(_displaced(fit))
    values = ["estimate", "ci_low", "ci_high"]
    want = profile(fit).to_frame()[values].to_numpy()
    np.testing.assert_allclose(result.to_frame()[values].to_numpy(), want, rtol=1e-6)
    assert re.fullmatch(
        r"While sd Intercept \| Subject was profiled, a better optimum than the fit's was found \(deviance lower by "
        r"[\d.]+\). The model was fitted again from there, and these are its estimates; look at the fit's "
        r"certificate\(\), and use restarts=5.",
        result.notes[0],
    )


def test_a_maximum_that_never_settles_is_an_error(monkeypatch):
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", balanced(), reml=False)
    better = Path(estimate=1.0, evaluations=1, better=np.array([1.0]), gain=1.0)
    monkeypatch.setattr(module, "follow", lambda *_, **__: better)
    message = (
        "profiling 'y ~ 1 + (1 | g)' met one better optimum after the other, so its likelihood has no settled maximum. "
        "Fit it with restarts=20, or simplify its random part."
    )
    refuses(EstimationError, f"^{re.escape(message)}$", profile, fit)


def test_a_profile_that_cannot_be_computed_is_nan_with_its_reason(monkeypatch):
    def fail(*_, **__):
        raise np.linalg.LinAlgError("the criterion cannot be evaluated next to the optimum")

    monkeypatch.setattr(module, "follow", fail)
    result = profile(lt.fit_lmm("y ~ 1 + (1 | g)", balanced(), reml=False), "sd")
    assert result.to_frame()[["ci_low", "ci_high"]].isna().all(axis=None)
    assert result.notes[0] == "sd Intercept | g: the criterion cannot be evaluated next to the optimum."


# ---------------------------------------------------------------------- what is asked for, and what is shown


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(0)
    g = np.repeat(np.arange(8), 6)
    x = np.tile(np.arange(6.0), 8)
    y = (1 + rng.normal(size=8))[g] + (0.5 + 0.4 * rng.normal(size=8))[g] * x + 0.5 * rng.normal(size=48)
    return lt.fit_lmm("y ~ x + (x | g)", {"y": y, "x": x, "g": g}, reml=False)


ALL = ("sd Intercept | g", "sd x | g", "corr Intercept, x | g", "residual sd", "Intercept", "x")


@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        (None, ALL),
        ("sd", ALL[:2]),
        ("g", ALL[:3]),
        (["fixed", "corr"], (ALL[2], *ALL[4:])),
        (["x", "residual sd", "x"], (ALL[3], ALL[5])),
        ("sd x | g", (ALL[1],)),
    ],
)
def test_parameters_are_chosen_by_kind_group_or_name(fit, parameters, want):
    result = profile(fit, parameters)
    assert result.labels == want
    assert list(result.to_frame().columns) == ["kind", "group", "name1", "name2", "estimate", "ci_low", "ci_high"]
    assert list(result.curves.columns) == ["kind", "group", "name1", "name2", "value", "zeta", "slope"]


def test_curves_pass_through_the_estimate_and_both_ends(fit):
    result = profile(fit)
    for row in result.to_frame().itertuples():
        same = [result.curves[key] == getattr(row, key) for key in ("kind", "group", "name1", "name2")]
        curve = result.curves[np.logical_and.reduce(same)]
        assert curve["value"].is_monotonic_increasing
        assert np.interp(0.0, curve["zeta"], curve["value"]) == approx(row.estimate, rel=1e-6)
        inner = curve[curve["zeta"].abs() < CUT + 1e-3]
        assert inner["value"].iloc[0] == approx(row.ci_low, rel=1e-3)
        assert inner["value"].iloc[-1] == approx(row.ci_high, rel=1e-3)


def test_a_fit_by_the_other_likelihood_is_refitted_and_this_is_said(fit):
    again = fit.refit(reml=True)
    result = profile(again, "sd")
    assert result.notes == (
        "The fit is by restricted maximum likelihood; it was refitted by maximum likelihood, whose estimates these "
        "are.",
        FEW.format("g has 8"),
    )
    assert result.likelihood == "maximum likelihood"
    np.testing.assert_allclose(result.table["ci_high"], profile(fit, "sd").table["ci_high"], rtol=1e-7)
    restricted = profile(fit, reml=True)
    assert restricted.likelihood == "restricted maximum likelihood"
    assert restricted.labels == ALL[:4]
    assert restricted.notes == (
        "The fit is by maximum likelihood; it was refitted by restricted maximum likelihood, "
        "whose estimates these are.",
    )
    np.testing.assert_allclose(restricted.table["estimate"].iloc[:2], again.varcorr["sd"].iloc[:2], rtol=1e-6)
    assert (restricted.table["ci_high"].iloc[:2] > result.table["ci_high"]).all()


def test_the_summary_says_what_was_done(fit):
    result = profile(fit, "sd", alpha=0.1)
    assert result.cut == approx(1.6448536269514722)
    assert "y ~ x + (x | g); 90 % intervals, not simultaneous, from the profile of the likelihood" in result.summary()
    assert "from the profile of the restricted likelihood" in profile(fit, "sd", reml=True).summary()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fit": 3}, "fit must be a fitted model, got int. Fit one with fit_lmm(...)."),
        ({"parameters": "sd Intercep | g"},
         "parameters: 'sd Intercep | g' is not a parameter of this model. Kinds: sd, corr, residual sd, fixed. "
         "Groups: g, Residual. Parameters: sd Intercept | g, sd x | g, corr Intercept, x | g, residual sd, "
         "Intercept, x. Did you mean 'sd Intercept | g'?"),
        ({"parameters": []},
         "parameters must be names, for instance 'sd', 'fixed' or a group of the random part; got []."),
        ({"parameters": 7},
         "parameters must be names, for instance 'sd', 'fixed' or a group of the random part; got 7."),
        ({"linear": [1, 2]}, "linear must be a dict of names to coefficients over Intercept, x, got list."),
        ({"linear": {"d": [1]}},
         "linear['d'] must have 2 finite coefficients that are not all zero, one for each of Intercept, x; got [1]."),
        ({"linear": {"d": ["a", "b"]}},
         "linear['d'] must have 2 finite coefficients that are not all zero, one for each of Intercept, x; "
         "got ['a', 'b']."),
        ({"linear": {"d": [0, 0]}},
         "linear['d'] must have 2 finite coefficients that are not all zero, one for each of Intercept, x; "
         "got [0, 0]."),
        ({"parameters": ["sd", "x"], "reml": True},
         "reml=True is for standard deviations and correlations, and 'x' is a function of the fixed effects, which "
         "the restricted likelihood does not hold. Use reml=False, or emmeans() for intervals with degrees of "
         "freedom."),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(fit, arguments, message):
    refuses(ArgumentError, f"^{re.escape(message)}$", profile, **{"fit": fit} | arguments)


def test_kinds_that_a_model_does_not_have_are_named():
    one_way = lt.fit_lmm("y ~ 1 + (1 | g)", balanced())
    message = (
        "parameters='corr': this model has no correlations, because every random-effects term has one effect. Use 'sd'."
    )
    refuses(ArgumentError, f"^{re.escape(message)}$", profile, one_way, "corr")
    plain = lt.fit_lmm("y ~ g", balanced())
    message = "parameters='sd': this model has no random effects. Use 'residual sd' or 'fixed'."
    refuses(ArgumentError, f"^{re.escape(message)}$", profile, plain, "sd")


def test_the_cut_is_the_normal_quantile():
    assert cut_of(0.95) == approx(CUT, abs=1e-15)


def test_priorband_intervals_take_less_than_five_seconds_of_work(data_dir):
    """86,400 rows, all seven parameters: fewer than a thousand evaluations of about half a millisecond."""
    table = pd.read_parquet(data_dir / "priorband.parquet")
    formula = "value ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"
    result = profile(lt.fit_lmm(formula, table, reml=False))
    assert result.evaluations < 1000
    sds = result.to_frame().set_index("group")
    assert sds.loc["benchmark:seed", ["estimate", "ci_low"]].tolist() == [0.0, 0.0]
    assert sds.loc["benchmark:algorithm", "ci_low"] == approx(0.2894, abs=1e-4)


def test_a_deviance_without_bounds_is_followed_to_the_cut_and_a_better_optimum_is_said():
    def bent(u):  # zeta = u + u^2 / 10 for u > -5, so that it is 1.96 at these values
        zeta = u + 0.1 * u**2
        return 7.0 + zeta**2, 2.0 * zeta * (1.0 + 0.2 * u)

    path = follow_deviance(bent, 7.0, 0.0, 1.0, cut=1.96)
    assert [path.low, path.high] == approx([-5.0 + np.sqrt(25.0 - 19.6), -5.0 + np.sqrt(25.0 + 19.6)], abs=1e-7)
    assert path.reasons == ()
    assert all(zeta == approx(u + 0.1 * u**2, abs=1e-12) for u, _, zeta, _ in path.points)
    lower = follow_deviance(lambda u: ((u - 3.0) ** 2, 2.0 * (u - 3.0)), 9.0, 0.0, 1.0, cut=1.96)
    assert np.isnan(lower.high)
    assert "a better optimum than the fit's was found at 1.96" in lower.reasons[-1]
