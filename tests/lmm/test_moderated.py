"""Moderated standard errors: limma's formulas, what they reduce to, and what they must not do."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from references import values
from refusals import refuses
from scipy import optimize, special, stats
from study import as_runs, make_scores, table_of_scores

import lmemtest as lt
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.means import empirical_bayes
from lmemtest.lmm.means.adjust import adjust_raw, most_true_pairs, step_down
from lmemtest.lmm.means.empirical_bayes import _scales, fit_scaled_f, moderation, squeeze, trigamma_inverse

REFERENCE = values("moderation")
FORMULA = "score ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)"


def table(sds, n_benchmarks=12, n_seeds=3, shifts=None, noise=0.3, seed=0):
    """Runs of algorithms whose advantages have standard deviations of their own."""
    counts = {"benchmark": n_benchmarks, "algorithm": len(sds), "seed": n_seeds}
    start = 0.0 if shifts is None else np.reshape(shifts, (-1, 1))
    effects = {"benchmark": 1.0, "benchmark:algorithm": sds}
    scores = make_scores(np.random.default_rng(seed), counts, effects, noise=noise, start=start)
    names = {
        "benchmark": [f"b{i:02d}" for i in range(n_benchmarks)],
        "algorithm": [f"A{i:02d}" for i in range(len(sds))],
    }
    return table_of_scores(scores, **names)


def fitted(frame, formula=FORMULA):
    return lt.fit_lmm(formula, as_runs(frame))


ERRATIC = table([0.4, 0.4, 0.4, 0.4, 3.0])


# ---------------------------------------------------------------------- the statistics


@pytest.mark.parametrize("case", REFERENCE["cases"])
def test_prior_and_posterior_are_those_of_limma(case):
    x, df = np.array(case["x"]), np.array(case["df"])
    s0, d0 = fit_scaled_f(x, df)
    if np.isinf(case["d0"]):  # limma takes the mean of x there, the fit of the logarithms is ours
        assert np.isinf(d0)
        s0 = x.mean()
    else:
        np.testing.assert_allclose([s0, d0], [case["s0"], case["d0"]], rtol=1e-10)
    np.testing.assert_allclose(
        squeeze(x, df, s0, d0)[0], case["posterior"], rtol=1e-8 if np.isinf(case["d0"]) else 1e-10
    )


def test_trigamma_is_inverted():
    x = np.geomspace(1e-4, 1e7, 200)
    np.testing.assert_allclose(trigamma_inverse(special.polygamma(1, x)), x, rtol=1e-8)
    assert np.isinf(trigamma_inverse(np.array([0.0, -1.0]))).all()


def test_a_value_that_its_prior_does_not_explain_stands_for_itself():
    x, df = np.array([0.5, 60.0]), np.array([9.0, 9.0])
    plain, _ = squeeze(x, df, np.array(1.0), np.array(50.0))
    value, d = squeeze(x, df, np.array(1.0), np.array(50.0), among=2)
    assert plain[1] < 12.0
    np.testing.assert_allclose([value[1], d[1]], [60.0, 9.0], rtol=1e-6)
    np.testing.assert_allclose([value[0], d[0]], [(50.0 + 9.0 * 0.5) / 59.0, 59.0], rtol=1e-12)


def test_the_variances_of_algorithms_are_found_where_pairs_are_their_sums():
    """Ratios without chance, ``v_ij = (a_i + a_j) / 2``: the fit is exact."""
    a = np.array([0.2, 0.5, 1.0, 1.5, 6.0])
    left, right = np.triu_indices(5, 1)
    found = moderation((a[left] + a[right]) / 2.0, np.full(10, 1000.0), left, right, np.ones(5))
    np.testing.assert_allclose(found.observed, a, rtol=1e-8)
    np.testing.assert_allclose(found.scale, a, rtol=0.01)


@pytest.mark.parametrize("erratic", [1.0, 9.0])
def test_the_variances_of_algorithms_solve_the_equations_of_their_likelihood(erratic):
    k, left, right = 120, *np.triu_indices(120, 1)
    y = np.random.default_rng(0).normal(size=(15, k)) * np.append(erratic, np.ones(k - 1))
    own = (y[:, left] - y[:, right]).var(axis=0, ddof=1) / 2
    a = moderation(own, np.full(len(own), 14.0), left, right, np.ones(k)).observed
    ratio = own / ((a[left] + a[right]) / 2)  # sum over pairs of v / t, which is the number of pairs
    np.testing.assert_allclose(np.bincount(left, ratio, k) + np.bincount(right, ratio, k), k - 1, rtol=1e-13)


def own_variances(kind, n_means, n_benchmarks, seed):
    """Ratios of the pairs of drawn advantages: alike, graded, one erratic, or two that are nearly identical."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n_benchmarks, n_means))
    if kind == "near-identical":
        y[:, 1] = y[:, 0] + 0.01 * y[:, 1]
    else:
        graded, erratic = np.linspace(0.3, 2.0, n_means), np.append(np.ones(n_means - 1), 5.0)
        y *= {"alike": 1.0, "graded": graded, "erratic": erratic}[kind]
    left, right = np.triu_indices(n_means, 1)
    own = (y[:, left] - y[:, right]).var(axis=0, ddof=1)
    return own / own.mean(), left, right


KINDS = ("alike", "graded", "erratic", "near-identical")


def scales_of(own, left, right, n_means):
    ones = np.ones(own.shape, dtype=bool)
    halves = Functions(np.stack([left, right]), np.full((2, len(left)), 0.5), n_means)
    return _scales(own, ones, halves)


@pytest.mark.parametrize("kind", KINDS)
def test_the_scales_of_three_algorithms_are_a_closed_form(kind):
    """Inside, ``v_ij = (a_i + a_j) / 2`` is solved; if that asks for a_1 < 0, it is 0 and a_2 : a_3 = v_12 : v_13."""
    inside = 0
    for seed in range(60):
        own, left, right = own_variances(kind, 3, 6, seed)
        found = scales_of(own, left, right, 3)
        want = own.sum() - 2.0 * own[::-1]  # the pair without mean i is the (2 - i)-th
        inside += (want >= 0.0).all()
        if (want < 0.0).any():
            low = int(want.argmin())
            opposite = own[2 - low]
            beside = {j: own[i_j] for i_j, pair in enumerate(zip(left, right, strict=True)) if low in pair
                      for j in pair if j != low}  # fmt: skip
            want = np.zeros(3)
            for j, value in beside.items():
                want[j] = value * (1.0 + opposite / sum(beside.values()))
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)
    assert inside < 60
    assert (inside == 0) == (kind == "near-identical")


@pytest.mark.parametrize("n_means", [4, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_the_scales_are_the_maximum_that_a_dense_search_finds(kind, n_means):
    for seed in range(3):
        own, left, right = own_variances(kind, n_means, 5, seed)

        def loss(a, own=own, left=left, right=right):
            t = np.maximum((a[left] + a[right]) / 2.0, 1e-300)
            slope = 0.5 * (1.0 - own / t)
            return (t - own * np.log(t)).sum(), sum(np.bincount(side, slope, n_means) for side in (left, right))

        found = scales_of(own, left, right, n_means)
        starts = np.random.default_rng(seed).gamma(1.0, size=(8, n_means)) + 1e-3
        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
        ends = [optimize.minimize(loss, x, jac=True, bounds=[(0, None)] * n_means, options=options) for x in starts]
        best = min(ends, key=lambda end: end.fun)
        assert loss(found)[0] <= best.fun + 1e-13
        if kind != "near-identical":  # there the search stops far below the top
            np.testing.assert_allclose(found, best.x, atol=2e-5)  # it ends somewhere on a flat top
        slope = loss(found)[1]  # the conditions of a maximum of a concave function
        assert np.abs(slope[found > 0.0]).max() < 1e-9
        assert (slope[found == 0.0] >= 0.0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_means", [3, 5])
def test_the_scales_depend_neither_on_the_order_of_algorithms_nor_on_the_number_of_steps(monkeypatch, kind, n_means):
    own = np.array([own_variances(kind, n_means, 6, seed)[0] for seed in range(40)])
    left, right = np.triu_indices(n_means, 1)
    found = scales_of(own, left, right, n_means)
    order = np.random.default_rng(0).permutation(n_means)
    square = np.zeros((40, n_means, n_means))
    square[:, left, right] = square[:, right, left] = own
    turned = scales_of(square[:, order][:, :, order][:, left, right], left, right, n_means)
    np.testing.assert_allclose(turned, found[:, order], rtol=1e-9, atol=1e-12)
    monkeypatch.setattr(empirical_bayes, "_STEPS", 50)
    np.testing.assert_array_equal(scales_of(own, left, right, n_means), found)


def test_tables_on_leading_axes_are_as_one_by_one():
    rng = np.random.default_rng(3)
    left, right = np.triu_indices(5, 1)
    v = rng.chisquare(7, size=(4, 10)) / 7
    v[1, 3] = v[2, :2] = np.nan
    df = np.full(10, 7.0)
    squares = np.zeros((10, 5))
    squares[np.arange(10), left] = squares[np.arange(10), right] = 1.0
    together = moderation(v, np.broadcast_to(df, v.shape), left, right, np.ones(5))
    all_ratios = together.ratios(squares, v, np.broadcast_to(df, v.shape), np.full(v.shape, 28.0))
    for n in range(4):
        alone = moderation(v[n], df, left, right, np.ones(5)).ratios(squares, v[n], df, np.full(10, 28.0))
        np.testing.assert_allclose([all_ratios[0][n], all_ratios[1][n]], alone, rtol=1e-10)


# ---------------------------------------------------------------------- the adjustment


def test_counts_of_true_pairs_by_enumeration():
    """All partitions of five means, and the pairs within their groups."""

    def partitions(n, most):
        if n == 0:
            yield []
        for size in range(min(n, most), 0, -1):
            for rest in partitions(n - size, size):
                yield [size, *rest]

    for k in (3, 5, 7):
        m = k * (k - 1) // 2
        possible = {sum(g * (g - 1) // 2 for g in part) for part in partitions(k, k)}
        expected = [max(c for c in possible if c <= m - r) for r in range(m)]
        np.testing.assert_array_equal(most_true_pairs(k), expected)


def test_the_first_step_is_tukey_on_normal_scores_and_later_ones_shaffer():
    p = np.array([0.001, 0.2, 0.004, 0.3, 0.03, 0.9])
    found = step_down(p, 4, first_by_range=True)
    z = stats.norm.isf(0.0005)
    assert found[0] == pytest.approx(stats.studentized_range.sf(np.sqrt(2) * z, 4, 1e6), rel=1e-3)
    assert found[2] == pytest.approx(3 * 0.004)
    assert np.all(found <= step_down(p, 4, first_by_range=False) + 1e-15)
    holm = adjust_raw(p, "holm", 6)
    assert np.all(step_down(p, 4, first_by_range=False) <= holm)


# ---------------------------------------------------------------------- on fits


def test_two_algorithms_have_the_paired_t_test():
    frame = table([0.5, 0.5], n_benchmarks=9)
    pair = fitted(frame).emmeans("algorithm").pairs().to_frame().iloc[0]
    wide = frame.pivot_table(index="benchmark", columns="algorithm", values="score")
    expected = stats.ttest_rel(wide["A00"], wide["A01"])
    np.testing.assert_allclose([pair["t_ratio"], pair["df"], pair["p_value"]], [expected.statistic, 8, expected.pvalue])


def test_own_variances_are_those_of_the_benchmarks_and_the_erratic_one_is_named():
    em = fitted(ERRATIC).emmeans("algorithm")
    own = em.pairs().to_frame().set_index(["left", "right"])
    model = em.pairs(adjust="tukey", vcov="model").to_frame().set_index(["left", "right"])
    wide = ERRATIC.pivot_table(index="benchmark", columns="algorithm", values="score")
    paired = {(a, b): (wide[a] - wide[b]).std(ddof=1) / np.sqrt(12) for a, b in own.index}
    ordinary = [pair for pair in own.index if "A04" not in pair]
    erratic = [pair for pair in own.index if "A04" in pair]
    assert (own.loc[ordinary, "se"] < 0.6 * model.loc[ordinary, "se"]).all()
    for pair in erratic:
        assert own.loc[pair, "se"] == pytest.approx(paired[pair], rel=0.25)
    note = " ".join(em.notes)
    assert "A04 varies about" in note
    assert not any(f"A0{i} varies" in note for i in range(4))


def test_tukey_is_the_models_hsd():
    fit = fitted(ERRATIC)
    shown = fit.emmeans("algorithm").pairs(adjust="tukey", vcov="model")
    plain = fit.emmeans("algorithm", vcov="model").pairs()
    pd.testing.assert_frame_equal(shown.to_frame(), plain.to_frame())
    assert plain.adjust == "tukey"
    assert (shown.errors, fit.emmeans("algorithm").pairs().errors) == ("model", "moderated")


def test_errors_are_chosen_by_name_and_not_by_the_adjustment():
    em = fitted(ERRATIC).emmeans("algorithm")
    refuses(ArgumentError, r"adjust='tukey' is for one variance .* Give vcov='model' with it", em.pairs, adjust="tukey")
    refuses(ArgumentError, "vcov must be 'moderated' or 'model'", em.pairs, vcov="robust")
    with pytest.raises(ArgumentError, match="vcov='moderated' needs estimates with moderated standard errors"):
        fitted(ERRATIC).emmeans("algorithm", vcov="model").pairs(vcov="moderated")


def test_a_planned_pair_has_the_paired_t_test():
    em = fitted(ERRATIC).emmeans("algorithm")
    wide = ERRATIC.pivot_table(index="benchmark", columns="algorithm", values="score")
    found = em.pairs(adjust="none")
    for row in found.table.to_dict("records"):
        want = stats.ttest_rel(wide[row["left"]], wide[row["right"]])
        np.testing.assert_allclose([row["t_ratio"], row["df"], row["p_value"]], [want.statistic, 11, want.pvalue])
    assert found.errors == "own"
    assert any("the paired t-test over their means" in note for note in found.notes)
    assert any("their own standard errors, not moderated" in note for note in found.notes)
    assert not any("shrunk" in note for note in found.notes)
    single = em.contrast({"planned": [1, 0, 0, 0, -1]}, adjust="holm").table.iloc[0]
    against = em.against("A04", adjust="none").table.iloc[0]
    pair = found.table.iloc[3]
    tost = em.equivalence(0.5, adjust="none").table.iloc[3]
    for other in (single, against, tost):
        np.testing.assert_allclose([other["se"], other["df"]], [pair["se"], pair["df"]])


def test_a_contrast_of_two_means_is_their_pair():
    em = fitted(ERRATIC).emmeans("algorithm")
    pair = em.pairs(adjust="none").to_frame().iloc[3]
    single = em.contrast({"A00 - A04": [1, 0, 0, 0, -1]}).to_frame().iloc[0]
    np.testing.assert_allclose(single[["se", "df"]].astype(float), pair[["se", "df"]].astype(float), rtol=1e-9)


def test_groups_have_families_of_their_own():
    frame = pd.concat(
        [table([0.4] * 4, seed=1).assign(prior="good"), table([0.4, 0.4, 0.4, 4.0], seed=2).assign(prior="bad")]
    )
    formula = "score ~ algorithm * prior + (0 + prior | benchmark) + (0 + prior | benchmark:algorithm)"
    fit = lt.fit_lmm(formula, as_runs(frame))
    em = fit.emmeans("algorithm", by="prior")
    notes = [note for note in em.notes if "varies about" in note]
    assert len(notes) == 1
    assert notes[0].startswith("At prior = bad: A03 varies about")
    by_prior = em.pairs().to_frame()
    assert by_prior["se"].notna().all()


def test_identical_runs_stay_with_the_model():
    """Two algorithms with the same scores: the benchmarks show no variance of their difference."""
    frame = table([0.4] * 4)
    copy = frame.loc[frame["algorithm"] == "A00", "score"].to_numpy()
    frame.loc[frame["algorithm"] == "A01", "score"] = copy
    found = fitted(frame).emmeans("algorithm").pairs().to_frame()
    same = found[(found["left"] == "A00") & (found["right"] == "A01")].iloc[0]
    assert same["se"] > 0
    assert same["p_value"] > 0.99


def test_a_model_without_the_interaction_does_not_make_the_errors_small():
    """By the model alone rows count as independent; the benchmarks say otherwise."""
    frame = table([0.8] * 4, n_seeds=20)
    short = fitted(frame, "score ~ algorithm + (1 | benchmark)")
    own = short.emmeans("algorithm").pairs().to_frame()["se"]
    full = fitted(frame).emmeans("algorithm").pairs().to_frame()["se"]
    by_model = short.emmeans("algorithm").pairs(adjust="tukey", vcov="model").to_frame()["se"]
    assert (by_model < 0.5 * full).all()
    assert (own > 0.8 * full).all()


def test_a_variance_of_zero_does_not_lend_the_degrees_of_freedom_of_the_runs():
    frame = table([0.0] * 3, n_benchmarks=5, n_seeds=10, noise=1.0, seed=4)
    fit = fitted(frame)
    assert fit.varcorr.set_index("group").loc["benchmark:algorithm", "variance"] < 1e-10
    em = fit.emmeans("algorithm")
    assert (em.pairs(adjust="tukey", vcov="model").to_frame()["df"] > 100).all()
    assert (em.pairs().to_frame()["df"] <= 8 + 1e-9).all()


def test_where_it_is_the_default():
    frame = ERRATIC
    assert lt.fit_lmm(FORMULA, frame).emmeans("algorithm").errors == "model"  # a plain table has no benchmarks
    assert fitted(frame).emmeans("algorithm").errors == "moderated"
    assert fitted(frame).emmeans("algorithm", ddf="asymptotic").errors == "model"
    two = frame[frame["benchmark"].isin(["b00", "b01"])]
    assert fitted(two).emmeans("algorithm").errors == "model"


def test_refusals_name_the_next_step():
    plain = lt.fit_lmm(FORMULA, ERRATIC)
    refuses(ArgumentError, r"vcov=moderated\(fit, cluster='benchmark'\)", plain.emmeans, "algorithm", vcov="moderated")
    fit = fitted(ERRATIC)
    with pytest.raises(ArgumentError, match="Leave ddf out, or use vcov='model'"):
        fit.emmeans("algorithm", vcov="moderated", ddf="asymptotic")
    with pytest.raises(ArgumentError, match=r"Make it from this fit: moderated\(fit, 'benchmark'\)"):
        fit.emmeans("algorithm", vcov=plain.moderated("benchmark"))
    one = lt.fit_lmm("score ~ algorithm + (1 | seed)", as_runs(ERRATIC[ERRATIC["benchmark"] == "b00"]))
    refuses(DesignError, "has one level", one.emmeans, "algorithm", vcov="moderated")


def test_what_shared_seeds_add_stays_as_the_model_has_it():
    """In complete tables: the mean square of benchmarks is moderated, the luck of the seeds is added to it."""
    rng = np.random.default_rng(5)
    frame = table([0.4] * 4, n_benchmarks=10, n_seeds=6, noise=0.5)
    luck = rng.normal(0.0, 0.6, size=(4, 6))
    places = frame["algorithm"].str[1:].astype(int), frame["seed"]
    frame["score"] += luck[places]
    with_seeds = fitted(frame, FORMULA + " + (1 | seed) + (1 | seed:algorithm)")
    without = fitted(frame)

    def squares(fit, vcov):
        return fit.emmeans("algorithm", vcov=vcov).pairs(adjust="none").to_frame()["se"].to_numpy() ** 2

    added = squares(with_seeds, "model") - squares(without, "model")
    assert (added > 0.3 * squares(without, "model")).all()
    np.testing.assert_allclose(squares(with_seeds, "moderated") - squares(without, "moderated"), added, rtol=1e-4)
    df = with_seeds.emmeans("algorithm").pairs().to_frame()["df"]
    assert (df < without.emmeans("algorithm").pairs().to_frame()["df"] + 15).all()


def test_the_best_and_controls_use_bonferroni_and_holm():
    em = fitted(table([0.4] * 4, shifts=[0.0, 0.9, 0.9, 2.0])).emmeans("algorithm")
    assert em.against("A00").adjust == "holm"
    best = em.best()
    assert best.candidates[()] == ("A00",)
    rivals = em.pairs().to_frame().iloc[:3]  # A00 minus each other one; smaller is better
    upper = -rivals["estimate"] + stats.t.isf(0.05 / 3, rivals["df"]) * rivals["se"]
    row = best.to_frame().set_index("algorithm").loc["A00"]
    assert row["ci_high"] == pytest.approx(upper.min(), rel=1e-9)
    result = em.against("A00").noninferiority(margin=3.0)
    assert result.adjust == "holm"
    with pytest.raises(ArgumentError, match="is for the model's standard errors"):
        em.against("A00").noninferiority(margin=3.0, adjust="dunnett")


def test_an_offset_moves_the_means_and_leaves_their_moderated_differences():
    frame = table([0.4] * 4, shifts=[0.0, 0.9, 0.9, 2.0])
    known = np.random.default_rng(2).normal(size=len(frame))
    moved = frame.assign(known=known, score=frame["score"] + known)
    plain = fitted(frame).emmeans("algorithm").pairs()
    offset = fitted(moved, f"{FORMULA} + offset(known)").emmeans("algorithm").pairs()
    assert plain.adjust == offset.adjust == "stepdown"
    numbers = ["estimate", "se", "df", "p_value"]
    np.testing.assert_allclose(offset.table[numbers], plain.table[numbers], rtol=1e-6)


def test_benchmarks_as_fixed_effects_or_random_ones_have_the_same_moderated_differences():
    frame = table([0.4] * 4, shifts=[0.0, 0.9, 0.9, 2.0])
    fixed = fitted(frame, "score ~ algorithm + benchmark").emmeans("algorithm", vcov="moderated").pairs()
    random = fitted(frame, "score ~ algorithm + (1|benchmark)").emmeans("algorithm", vcov="moderated").pairs()
    np.testing.assert_allclose(fixed.table["estimate"], random.table["estimate"], rtol=1e-6)
    np.testing.assert_allclose(fixed.table["se"], random.table["se"], rtol=1e-4)


def test_advantages_that_are_the_same_on_all_benchmarks_leave_the_models_errors():
    rows = [(a, b, 0.1 * b + 0.05 * i + 0.001 * e) for i, a in enumerate("ABCD") for b in range(6) for e in (-1, 0, 1)]
    frame = pd.DataFrame(rows, columns=["algorithm", "benchmark", "score"])
    runs = lt.Runs(frame, score="score", direction="maximize", algorithm="algorithm", benchmark="benchmark")
    fit = lt.fit_lmm(FORMULA, runs)
    moderated, model = (fit.emmeans("algorithm", vcov=vcov).pairs().to_frame()["se"] for vcov in ("moderated", "model"))
    np.testing.assert_allclose(moderated, model)


def test_pairs_beside_terms_that_reach_over_clusters_travel():
    means = fitted(ERRATIC, FORMULA + " + (1 | seed)").emmeans("algorithm")
    assert means.moderate.within is not None
    again = pickle.loads(pickle.dumps(means)).pairs().to_frame()
    pd.testing.assert_frame_equal(again, means.pairs().to_frame())
