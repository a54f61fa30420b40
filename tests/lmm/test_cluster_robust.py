"""CR2 against n x n matrices, clubSandwich (tests/reference/cluster_robust.R), paired t-tests and its invariances."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refusal, refuses
from scipy import stats
from study import table_of_scores

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, DesignError, UnknownColumnError
from lmemtest.lmm.engine import robust
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.engine.robust import cluster_leverage, sandwich
from lmemtest.lmm.intervals.cluster_robust import cluster_robust
from lmemtest.lmm.means.f_tests import anova, joint_tests

KINDS = ("CR0", "CR1", "CR2")
N_FITS, ABSORBED = 16, 4  # ABSORBED: least squares with an effect of each cluster
CASES = [pytest.param(i, kind, id=f"{i}-{kind}") for i in range(N_FITS) for kind in KINDS]


# ---------------------------------------------------------------------- the definition, with n x n matrices


def power(S, exponent):
    """A power of a symmetric matrix, of zero eigenvalues zero."""
    values, vectors = np.linalg.eigh(0.5 * (S + S.T))
    kept = values > 1e-9 * values.max()
    return (vectors[:, kept] * values[kept] ** exponent) @ vectors[:, kept].T


def adjustment(V, Ve, kind, root):
    """A_c: the identity, the root of the package, or that of clubSandwich."""
    if kind != "CR2":
        return np.eye(len(V))
    D = np.linalg.cholesky(V).T
    if root == "clubSandwich":
        return D.T @ power(D @ Ve @ D.T, -0.5) @ D
    inner = np.linalg.inv(D)
    return D.T @ power(inner.T @ Ve @ inner, -0.5) @ inner.T


def contributions(X, V, cluster, kind="CR2", root="package"):
    """(n_clusters, p, n): what each cluster adds to the estimates, as a linear function of the scores."""
    W = np.linalg.inv(V)
    M = np.linalg.inv(X.T @ W @ X)
    residual = np.eye(len(X)) - X @ M @ X.T @ W
    levels = pd.unique(cluster)
    out = []
    for level in levels:
        i = np.flatnonzero(cluster == level)
        Vc = V[np.ix_(i, i)]
        A = adjustment(Vc, Vc - X[i] @ M @ X[i].T, kind, root)
        out.append(M @ X[i].T @ np.linalg.solve(Vc, A @ residual[i]))
    factor = len(levels) / (len(levels) - 1) if kind == "CR1" else 1.0
    return np.sqrt(factor) * np.array(out)


def satterthwaite(P, V):
    """2 E^2 / Var of the sum of squares of each estimate's contributions."""
    out = []
    for j in range(P.shape[1]):
        G = P[:, j] @ V @ P[:, j].T
        out.append(np.trace(G) ** 2 / np.sum(G * G))
    return np.array(out)


def wishart_df(P, V, rows):
    """eta from all covariances between contributions, without any shortcut."""
    Q = P[:, rows]
    T = np.einsum("csn,nm,dtm->cdst", Q, V, Q, optimize=True)
    mean = np.einsum("ccst->st", T)
    half = np.linalg.inv(np.linalg.cholesky(mean))
    T = half @ T @ half.T
    q = len(rows)
    total = np.sum(np.einsum("cdss->cd", T) ** 2) + np.einsum("cdst,cdts->", T, T)
    return q * (q + 1) / total


def random_covariance(fit, rows):
    """Z Sigma Z' of every row of a table."""
    V = np.zeros((len(rows), len(rows)))
    for i, S in enumerate(fit.covariances):
        basis, codes = fit.design.random_rows(i, rows)
        V += (basis @ S @ basis.T) * (codes[:, None] == codes)
    return V


def working_covariance(fit, rows):
    """V of every row of a table, from the estimates."""
    residual = np.full(len(rows), fit.scale)
    if fit.dispersion is not None:
        residual = rows[fit.dispersion].map(fit.residual_variances).to_numpy(dtype=float)
    if fit.weights is not None:
        residual = residual / rows[fit.weights].to_numpy()
    return random_covariance(fit, rows) + np.diag(residual)


@pytest.fixture(scope="module")
def dense():
    """Fit number i, R's values, its table, X and V; kept for the module."""
    kept = {}

    def get(i, reference, reference_input):
        if i not in kept:
            want = reference("cluster_robust")["fits"][i]
            rows = reference_input(want["data"])
            fit = lt.fit_lmm(want["formula"], rows, weights=want.get("weights"), dispersion=want.get("dispersion"))
            X = fit.design.rows(rows)[:, fit.problem.kept]
            kept[i] = want, rows, fit, X, working_covariance(fit, rows)
        return kept[i]

    return get


def determined(frame):
    """Rows that have a standard error: without the effects of the clusters themselves."""
    return frame["se"].notna().to_numpy()


@pytest.mark.daily(19)
@pytest.mark.parametrize(("i", "kind"), CASES)
def test_p_by_p_algebra_equals_n_by_n_matrices(dense, reference, reference_input, i, kind):
    want, rows, fit, X, V = dense(i, reference, reference_input)
    robust = cluster_robust(fit, want["cluster"], kind=kind)
    P = contributions(X, V, rows[want["cluster"]].to_numpy(), kind)
    scores = P @ rows[fit.design.parsed.response].to_numpy()
    cov, frame = scores.T @ scores, robust.to_frame()
    known = determined(frame)
    assert robust.cov_params().to_numpy() == approx(cov, rel=1e-9, abs=1e-12 * cov.max())
    assert frame["df"][known].to_numpy() == approx(satterthwaite(P, V)[known], rel=1e-10)
    tested = np.flatnonzero(known)[1:4]
    if len(tested) > 1:
        test = robust.f_test(np.eye(len(fit.params))[tested])
        eta = wishart_df(P, V, tested)
        assert test.df_den == approx(eta - len(tested) + 1, rel=1e-9)


@pytest.mark.parametrize(("i", "kind"), CASES)
def test_agrees_with_clubsandwich_where_the_roots_agree(dense, reference, reference_input, i, kind):
    want, _, fit, _, _ = dense(i, reference, reference_input)
    theirs = want[kind]
    frame = cluster_robust(fit, want["cluster"], kind=kind).to_frame()
    known = determined(frame)
    estimated = {"lm": 1e-9, "lmer": 1e-8, "lme": 4e-6}[want["method"]]  # accuracy of R's variances
    same_root = kind != "CR2" or (want["method"] == "lm" and "weights" not in want)
    tolerance = estimated if same_root else 6e-3  # 5.5e-3 is the largest difference between the two roots
    assert frame["se"][known].to_numpy() == approx(np.array(theirs["se"])[known], rel=tolerance)
    assert frame["df"][known].to_numpy() == approx(np.array(theirs["df"])[known], rel=min(tolerance, 5e-5))
    if "joint" in theirs and i != ABSORBED:
        rows = np.eye(len(fit.params))[1:4]
        test, joint = cluster_robust(fit, want["cluster"], kind=kind).f_test(rows), theirs["joint"]
        assert test.df_num == joint["df_num"]
        assert test.df_den == approx(joint["df_den"], rel=min(tolerance, 1e-4))
        assert test.f_ratio == approx(joint["f"], rel=2 * tolerance)
        assert test.p_value == approx(joint["p_value"], rel=3 * tolerance)


@pytest.mark.parametrize("i", range(N_FITS))
def test_clubsandwich_differs_by_its_root_alone(dense, reference, reference_input, i):
    want, rows, fit, X, V = dense(i, reference, reference_input)
    P = contributions(X, V, rows[want["cluster"]].to_numpy(), root="clubSandwich")
    scores = P @ rows[fit.design.parsed.response].to_numpy()
    known = determined(cluster_robust(fit, want["cluster"]).to_frame())
    tolerance = {"lm": 1e-9, "lmer": 1e-8, "lme": 4e-6}[want["method"]]
    assert np.sqrt(np.sum(scores**2, axis=0))[known] == approx(np.array(want["CR2"]["se"])[known], rel=tolerance)
    assert satterthwaite(P, V)[known] == approx(np.array(want["CR2"]["df"])[known], rel=tolerance)


# ---------------------------------------------------------------------- closed forms


def table(rng, benchmarks=9, seeds=4, algorithms=("a", "b", "c")):
    shape = (benchmarks, len(algorithms), seeds)
    spread = np.exp(rng.normal(size=benchmarks))[:, None, None]
    shift = rng.normal(size=shape[:2])[..., None]
    scores = rng.normal(size=benchmarks)[:, None, None] + spread * (shift + rng.normal(size=shape))
    names = {"benchmark": [f"b{i}" for i in range(benchmarks)], "algorithm": algorithms}
    return table_of_scores(scores, "benchmark algorithm seed", **names)


NESTED = "score ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"


@pytest.mark.parametrize("formula", ["score ~ algorithm", "score ~ algorithm + (1|benchmark)", NESTED])
def test_balanced_differences_are_paired_t_tests_over_the_clusters(formula):
    rows = table(np.random.default_rng(4))
    fit = lt.fit_lmm(formula, rows)
    pairs = fit.emmeans("algorithm", vcov=cluster_robust(fit, "benchmark")).pairs(adjust="none").to_frame()
    means = rows.pivot_table(index="benchmark", columns="algorithm", values="score")
    for pair in pairs.itertuples():
        want = stats.ttest_rel(means[pair.left], means[pair.right])
        assert (pair.t_ratio, pair.p_value, pair.df) == approx((want.statistic, want.pvalue, 8), rel=1e-9)


def test_the_mean_is_a_one_sample_t_test_of_the_cluster_means():
    rows = table(np.random.default_rng(5))
    robust = cluster_robust(lt.fit_lmm("score ~ 1 + (1|benchmark)", rows), "benchmark").to_frame()
    want = stats.ttest_1samp(rows.groupby("benchmark")["score"].mean(), 0.0)
    assert robust.loc[0, ["t_ratio", "p_value", "df"]].to_list() == approx([want.statistic, want.pvalue, 8], rel=1e-9)


def test_a_large_fit_is_a_paired_t_test(data_dir):
    rows = pd.read_parquet(data_dir / "priorband.parquet")
    fit = lt.fit_lmm(
        "value ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)", rows, restarts=0
    )
    robust = cluster_robust(fit, "benchmark").to_frame()
    means = rows.pivot_table(index="benchmark", columns="algorithm", values="value", observed=True)
    for row in robust.iloc[1:].itertuples():
        want = stats.ttest_rel(means[row.term[-3:-1]], means["HB"])
        assert (row.t_ratio, row.df) == approx((want.statistic, 11), rel=1e-7)


# ---------------------------------------------------------------------- invariances


@pytest.fixture(scope="module")
def unbalanced():
    rng = np.random.default_rng(8)
    rows = table(rng, seeds=6)
    return rows.sample(frac=0.6, random_state=rng).reset_index(drop=True)


@pytest.mark.parametrize("dispersion", [None, "algorithm", "benchmark"])
def test_rows_that_are_listed_one_by_one_give_the_same_as_cells(unbalanced, dispersion):
    repeated = pd.concat([unbalanced, unbalanced.assign(score=unbalanced["score"] + 1.0)], ignore_index=True)
    fit = lt.fit_lmm(NESTED, repeated, dispersion=dispersion)
    assert len(fit.cells.n) == len(unbalanced)
    robust = cluster_robust(fit, "benchmark")
    X = fit.design.rows(repeated)
    P = contributions(X, working_covariance(fit, repeated), repeated["benchmark"].to_numpy())
    scores = P @ repeated["score"].to_numpy()
    assert robust.cov_params().to_numpy() == approx(scores.T @ scores, rel=1e-9)

    # the engine itself, on rows: all that it sees of a row is the cell that the row belongs to
    problem, at = fit.problem, fit.optim.criterion
    key = ["algorithm", "benchmark", "seed"]
    cell = pd.MultiIndex.from_frame(fit.cells.frame[key]).get_indexer(pd.MultiIndex.from_frame(repeated[key]))
    precision = fit.scale / np.diag(working_covariance(fit, repeated) - random_covariance(fit, repeated))
    leverage = cluster_leverage(
        at,
        fit.held,
        np.linalg.solve(problem.RX.T, X.T).T,
        (repeated["score"].to_numpy() - X @ problem.offset) / problem.y_scale,
        precision,
        row=np.arange(len(repeated)),
        cells=cell,
        cluster=repeated["benchmark"].factorize(sort=True)[0],
        n_clusters=9,
    )
    assert sandwich(leverage, adjusted=True).w == approx(robust.engine.w, rel=1e-8, abs=1e-10)


def test_the_root_does_not_depend_on_how_the_rows_are_combined(unbalanced):
    fit = lt.fit_lmm(NESTED, unbalanced)
    X, V, y = fit.design.rows(unbalanced), working_covariance(fit, unbalanced), unbalanced["score"].to_numpy()
    cluster = unbalanced["benchmark"].to_numpy()
    rng = np.random.default_rng(0)
    T = rng.normal(size=V.shape) * (cluster[:, None] == cluster)
    rotation = T.copy()
    for level in np.unique(cluster):
        i = np.ix_(cluster == level, cluster == level)
        rotation[i] = np.linalg.qr(T[i])[0]

    def covariance(T, root):
        scores = contributions(T @ X, T @ V @ T.T, cluster, root=root) @ (T @ y)
        return scores.T @ scores

    same = np.eye(len(V))
    assert covariance(T, "package") == approx(covariance(same, "package"), rel=1e-6)
    assert covariance(rotation, "clubSandwich") == approx(covariance(same, "clubSandwich"), rel=1e-8)
    assert covariance(T, "clubSandwich") != approx(covariance(same, "clubSandwich"), rel=1e-3)


def test_cr2_is_unbiased_under_the_working_model(unbalanced):
    def mean(kind):
        engine = cluster_robust(lt.fit_lmm(NESTED, unbalanced), "benchmark", kind=kind).engine
        return np.einsum("cpi,ci,cqi->pq", engine.U, engine.of_own - engine.of_B**2, engine.U)

    assert mean("CR2") == approx(np.eye(3), abs=1e-12)
    assert np.linalg.eigvalsh(mean("CR0")).max() < 0.95


@pytest.mark.parametrize("balanced", [True, False])
def test_clusters_with_few_different_rows_of_the_fixed_part_are_taken_at_their_rank(monkeypatch, balanced):
    """Each benchmark is in one of four families, whose algorithms have means of their own: rank 3 of 12."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(list(np.ndindex(3, 12, 4)), columns=["algorithm", "benchmark", "seed"])
    rows = rows.assign(family=rows["benchmark"] % 4).astype(str).assign(score=rng.normal(size=len(rows)))
    if not balanced:
        rows = rows.sample(frac=0.7, random_state=1)
    fit = lt.fit_lmm("score ~ algorithm * family + (1|benchmark) + (1|benchmark:algorithm)", rows)
    assert (fit.problem.anova is not None) == balanced
    low = cluster_robust(fit, "benchmark")
    assert low.engine.U.shape == (12, 12, 3)
    monkeypatch.setattr(robust, "_FULL_FROM", 0.0)
    full = cluster_robust(fit, "benchmark")
    assert full.engine.U.shape == (12, 12, 12)
    assert low.cov_params().to_numpy() == approx(full.cov_params().to_numpy(), rel=1e-9, abs=1e-12)
    L = rng.normal(size=(5, 12))
    assert low.df(L) == approx(full.df(L), rel=1e-9)
    assert low.f_test(L[:2]).df_den == approx(full.f_test(L[:2]).df_den, rel=1e-9)


def test_the_coding_does_not_matter(unbalanced):
    def differences(rows):
        fit = lt.fit_lmm(NESTED, rows)
        em = fit.emmeans("algorithm", vcov=cluster_robust(fit, "benchmark"))
        return em.pairs().to_frame().set_index(["left", "right"])

    first = differences(unbalanced)
    recoded = differences(unbalanced.assign(algorithm=pd.Categorical(unbalanced["algorithm"], list("cab"))))
    columns = ["se", "df"]
    assert recoded.loc[("a", "b"), columns].to_list() == approx(first.loc[("a", "b"), columns].to_list(), rel=1e-6)


# ---------------------------------------------------------------------- clusters


def test_clusters_may_be_a_column_outside_of_the_formula(unbalanced):
    family = unbalanced.assign(family=unbalanced["benchmark"].map(lambda b: f"f{int(b[1]) // 2}"))
    fit = lt.fit_lmm("score ~ algorithm + (1|benchmark)", family)
    inside = lt.fit_lmm("score ~ algorithm + (1|benchmark) + (1|family)", family)
    assert "family" not in fit.cells.frame
    robust = cluster_robust(fit, "family")
    P = contributions(fit.design.rows(family), working_covariance(fit, family), family["family"].to_numpy())
    scores = P @ family["score"].to_numpy()
    assert robust.bse.to_numpy() == approx(np.sqrt(np.sum(scores**2, axis=0)), rel=1e-9)
    assert (robust.n_clusters, cluster_robust(inside, "family").n_clusters) == (5, 5)


@pytest.mark.parametrize("backend", ["pandas", "polars-lazy", "runs"])
def test_tables_of_all_kinds_weights_and_transformed_scores(unbalanced, backend):
    rng = np.random.default_rng(3)
    rows = unbalanced.assign(
        family=unbalanced["benchmark"].map(lambda b: f"f{int(b[1]) // 2}"),
        w=rng.choice([0.5, 1.0, 3.0], len(unbalanced)),
        score=np.exp(unbalanced["score"]),
    )
    table = rows
    if backend == "polars-lazy":
        table = pytest.importorskip("polars").from_pandas(rows).lazy()
    elif backend == "runs":
        table = lt.Runs(rows, score="score", direction="minimize", algorithm="algorithm", benchmark="benchmark")
    fit = lt.fit_lmm("log(score) ~ algorithm + (1|benchmark)", table, weights="w", dispersion="algorithm")
    robust = cluster_robust(fit, "family")
    P = contributions(fit.design.rows(rows), working_covariance(fit, rows), rows["family"].to_numpy())
    scores = P @ np.log(rows["score"].to_numpy())
    assert robust.bse.to_numpy() == approx(np.sqrt(np.sum(scores**2, axis=0)), rel=1e-9)


def test_a_missing_cluster_is_refused(unbalanced):
    rows = unbalanced.assign(family=["x", "y", *[None] * (len(unbalanced) - 2)])
    with pytest.raises(DataError, match="The column 'family' has 95 missing values"):
        cluster_robust(lt.fit_lmm("score ~ algorithm", rows), "family")


def test_cells_that_reach_over_clusters_are_split(unbalanced):
    fit = lt.fit_lmm("score ~ algorithm", unbalanced)
    assert len(fit.cells.n) == 3
    robust = cluster_robust(fit, "benchmark")
    P = contributions(fit.design.rows(unbalanced), fit.scale * np.eye(len(unbalanced)), unbalanced["benchmark"])
    scores = P @ unbalanced["score"].to_numpy()
    assert robust.bse.to_numpy() == approx(np.sqrt(np.sum(scores**2, axis=0)), rel=1e-9)


def test_several_columns_make_clusters_of_their_combinations(unbalanced):
    rows = unbalanced.assign(run=unbalanced["benchmark"] + "/" + unbalanced["seed"].astype(str))
    fit = lt.fit_lmm("score ~ algorithm + (1|benchmark:seed)", rows)
    joint, single = cluster_robust(fit, ["benchmark", "seed"]), cluster_robust(fit, "run")
    assert joint.label == "benchmark:seed"
    assert joint.bse.to_numpy() == approx(single.bse.to_numpy(), rel=1e-12)


def test_coefficients_that_hang_on_a_dropped_column_have_no_standard_error(unbalanced):
    rows = unbalanced.assign(copy=unbalanced["algorithm"].map({"a": "x", "b": "y", "c": "y"}))
    fit = lt.fit_lmm("score ~ algorithm + copy + (1|benchmark)", rows)
    robust, plain = cluster_robust(fit, "benchmark"), lt.fit_lmm("score ~ algorithm + (1|benchmark)", rows)
    assert robust.bse.isna().to_list() == fit.to_frame()["se"].isna().to_list() == [False, True, True, True]
    assert list(robust.cov_params().columns) == ["Intercept", "algorithm[T.b]", "algorithm[T.c]"]
    want = cluster_robust(plain, "benchmark").cov_params().to_numpy()
    assert robust.cov_params().to_numpy() == approx(want, rel=1e-8)


def test_an_effect_of_one_cluster_has_no_robust_standard_error(unbalanced):
    fit = lt.fit_lmm("score ~ algorithm + benchmark", unbalanced)
    robust = cluster_robust(fit, "benchmark")
    assert robust.bse.notna().to_list() == [False, True, True, *[False] * 8]
    assert (
        "A single cluster determines Intercept, benchmark[T.b1], benchmark[T.b2], benchmark[T.b3], benchmark[T.b4], "
        "... (9 in all) (a part of it, at least), so the scatter between clusters does not show the precision: no "
        "standard error. Effects of the clusters belong in the random part."
    ) in robust.notes
    em = fit.emmeans("algorithm", vcov=robust)
    assert np.isfinite(em.estimate).all()
    assert np.isnan(np.concatenate([em.se, em.df, em.ci_low])).all()
    assert em.pairs().to_frame()["p_value"].notna().all()
    tests = anova(fit, vcov=robust)
    assert tests.to_frame()["term"].to_list() == ["algorithm"]
    assert (
        "No robust test of benchmark: a single cluster determines a part of it, or all clusters agree on it."
    ) in tests.notes


def test_clusters_that_agree_to_rounding_give_no_test(unbalanced):
    copies = pd.concat([unbalanced.assign(prior=p) for p in ("good", "bad")], ignore_index=True)
    robust = cluster_robust(lt.fit_lmm("score ~ algorithm + prior + (1|benchmark)", copies), "benchmark")
    assert robust.bse.isna().to_list() == [False, False, False, True]
    assert robust.notes[1] == (
        "All clusters agree on prior[T.good] to rounding, so there is no standard error and no test. Are some rows "
        "copies of others?"
    )


# ---------------------------------------------------------------------- what is made from it


def test_everything_made_from_the_means_uses_the_robust_covariance(unbalanced):
    fit = lt.fit_lmm(NESTED, unbalanced)
    robust = cluster_robust(fit, "benchmark")
    em = fit.emmeans("algorithm", vcov=robust)
    plain = fit.emmeans("algorithm")
    assert em.estimate == approx(plain.estimate, rel=1e-12)
    assert em.se == approx(np.sqrt(np.diag(robust.cov(em.L))), rel=1e-12)
    assert em.df == approx(robust.df(em.L), rel=1e-12)
    assert em.se != approx(plain.se, rel=1e-3)
    assert em.notes[0] == (
        "Standard errors: CR2 covariance from 9 clusters (benchmark), Satterthwaite degrees of freedom."
    )
    assert "cluster-robust Satterthwaite degrees of freedom" in em.summary()
    pairs = em.pairs()
    assert pairs.to_frame()["df"].to_numpy() == approx(robust.df(np.array([[0, -1, 0], [0, 0, -1], [0, 1, -1]])))
    ranking = pairs.decisions()
    assert ranking.ddf == "cluster-robust"
    assert "cluster-robust Satterthwaite degrees of freedom" in ranking.summary()
    assert len(em.pairs(adjust="mvt", rng=1).to_frame()) == 3


def test_one_degree_of_freedom_f_is_the_square_of_t(unbalanced):
    fit = lt.fit_lmm("score ~ algorithm + (1|benchmark)", unbalanced)
    robust = cluster_robust(fit, "benchmark")
    row = robust.to_frame().iloc[1]
    test = robust.f_test(np.array([[0.0, -2.0, 0.0]]))
    assert (test.f_ratio, test.df_den, test.p_value) == approx((row["t_ratio"] ** 2, row["df"], row["p_value"]))
    again = robust.f_test(np.array([[0.0, 1.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]]))
    assert (again.df_num, again.p_value) == (1, approx(test.p_value))


def test_terms_are_tested_jointly(unbalanced):
    fit = lt.fit_lmm("score ~ algorithm + (1|benchmark)", unbalanced)
    robust = cluster_robust(fit, "benchmark")
    want = robust.f_test(np.eye(3)[1:])
    for tests in (anova(fit, vcov=robust), joint_tests(fit, vcov=robust)):
        row = tests.to_frame().iloc[0]
        assert row[["f_ratio", "df_den", "p_value"]].to_list() == approx([want.f_ratio, want.df_den, want.p_value])
        assert tests.ddf == "cluster-robust"
        assert (
            tests.notes[0] == "CR2 covariance from 9 clusters (benchmark), Satterthwaite degrees of freedom, HTZ tests."
        )


def test_more_functions_than_clusters_have_no_joint_test():
    rows = table(np.random.default_rng(2), benchmarks=3, algorithms=tuple("abcde"))
    fit = lt.fit_lmm("score ~ algorithm + (1|benchmark)", rows)
    robust = cluster_robust(fit, "benchmark")
    tests = anova(fit, vcov=robust)
    assert tests.to_frame()[["df_den", "f_ratio", "p_value"]].isna().all(axis=None)
    assert tests.notes[1:] == (
        "3 clusters are too few to test all of algorithm at once. Compare single means instead.",
    )
    assert robust.f_test(np.eye(5)[1:2]).p_value == approx(robust.to_frame().loc[1, "p_value"])


def test_notes_say_what_few_clusters_mean(unbalanced):
    rows = unbalanced[unbalanced["benchmark"].isin(["b0", "b1", "b2"])]
    robust = cluster_robust(lt.fit_lmm("score ~ algorithm + (1|benchmark)", rows), "benchmark", kind="CR1")
    assert robust.notes == (
        "Only 3 clusters (benchmark): the standard errors are themselves uncertain, which the degrees of freedom show. "
        "Differences that are not very large will not be found.",
        "Fewer than 4 degrees of freedom for Intercept, algorithm[T.b], algorithm[T.c]: p-values near the level are "
        "not reliable.",
        "CR1 standard errors are too small with few clusters; CR2 corrects that.",
    )
    text = robust.summary()
    assert text.startswith("Fixed effects, standard errors robust to clusters (benchmark)\n")
    assert "CR1 covariance from 3 clusters (benchmark)" in text


# ---------------------------------------------------------------------- refusals


def test_crossed_random_effects_are_refused(unbalanced):
    fit = lt.fit_lmm("score ~ algorithm + (1|benchmark) + (1|seed)", unbalanced)
    assert refusal(lambda: cluster_robust(fit, "benchmark"), DesignError) == (
        "clusters must be independent of each other, but the random effect (1 | seed) ties clusters of 'benchmark' "
        "together: its level '1' occurs in several. Choose a coarser cluster= that contains every level of 'seed', or "
        "fit the effect within clusters, benchmark:seed, if its levels are not the same thing in different clusters."
    )


def test_clusters_finer_than_a_random_effect_are_refused(unbalanced):
    fit = lt.fit_lmm("score ~ algorithm + (1|benchmark)", unbalanced)
    with pytest.raises(DesignError, match=r"the random effect \(1 \| benchmark\) ties clusters of 'seed' together"):
        cluster_robust(fit, "seed")


def test_bad_arguments_are_named(unbalanced):
    fit = lt.fit_lmm("score ~ algorithm + (1|benchmark)", unbalanced.assign(one="x"))
    assert refusal(lambda: cluster_robust(fit, "one"), DesignError) == (
        "cluster='one' has one level, and the scatter of a single cluster shows no variance. Choose a column with at "
        "least two levels, better ten or more."
    )
    with pytest.raises(UnknownColumnError, match=r"cluster names the column 'benchmrk'.*Did you mean 'benchmark'"):
        cluster_robust(fit, "benchmrk")
    with pytest.raises(ArgumentError, match="kind must be 'CR0' or 'CR1' or 'CR2', got 'CR3'"):
        cluster_robust(fit, "benchmark", kind="CR3")
    refuses(ArgumentError, "cluster must name at least one column", cluster_robust, fit, [])
    refuses(ArgumentError, r"^fit must be", cluster_robust, unbalanced, "benchmark")
    refuses(ArgumentError, r"^cluster must be a name or several names of columns, got 3\.$", cluster_robust, fit, 3)


def test_the_footer_names_the_residual_variances_of_the_model(unbalanced):
    formula = "score ~ algorithm + (1 | benchmark)"
    robust = cluster_robust(lt.fit_lmm(formula, unbalanced, dispersion="benchmark"), "benchmark")
    assert f"{formula}, residual variance by benchmark; CR2 covariance from" in robust.summary()


def test_simulated_scores_cannot_be_sorted_by_a_column_outside_of_the_model(unbalanced):
    rows = unbalanced.assign(family=unbalanced["benchmark"].map(lambda b: f"f{int(b[1]) // 2}"))
    fit = lt.fit_lmm("score ~ algorithm + (1|benchmark)", rows)
    again = fit.refit(cells=fit.simulate(rng=1))
    assert cluster_robust(again, "benchmark").n_clusters == 9
    assert refusal(lambda: cluster_robust(again, "family"), DataError) == (
        "the fit was made from other scores than its table holds (a refit to simulated cells), so its rows cannot be "
        "sorted into clusters by family. Fit the table itself, or name columns of the formula."
    )


def test_a_covariance_must_come_from_the_same_fit_and_alone(unbalanced):
    fit = lt.fit_lmm("score ~ algorithm + (1|benchmark)", unbalanced)
    other = lt.fit_lmm("score ~ algorithm", unbalanced)
    robust = cluster_robust(fit, "benchmark")
    assert refusal(lambda: other.emmeans("algorithm", vcov=robust), ArgumentError) == (
        "vcov belongs to another fit (score ~ algorithm + (1|benchmark)) than the one given (score ~ algorithm). Make "
        "it from this fit: cluster_robust(fit, 'benchmark')."
    )
    refuses(ArgumentError, r"^vcov must be 'moderated' or 'model', got 'CR2'\.$", fit.emmeans, "algorithm", vcov="CR2")
    assert refusal(lambda: fit.emmeans("algorithm", vcov=robust, ddf="residual"), ArgumentError) == (
        "vcov= brings its own degrees of freedom, so ddf='residual' has no use. Leave ddf out."
    )
    with pytest.raises(ArgumentError, match="has_variance"):
        cluster_robust(lt.fit_lmm("score ~ benchmark", unbalanced), "benchmark").f_test(np.eye(9)[1:3])


# ---------------------------------------------------------------------- shortcuts

CROSSED = pd.MultiIndex.from_product([range(4), range(6), range(3)], names=["algorithm", "benchmark", "seed"])


def crossed_table(missing=0):
    rng = np.random.default_rng(8)
    frame = CROSSED.to_frame(index=False)
    frame["half"], frame["score"] = frame["benchmark"] % 4, rng.normal(size=len(frame)) + 0.5 * frame["benchmark"] ** 2
    return frame.astype(dict.fromkeys([*CROSSED.names, "half"], str)).drop(index=rng.permutation(len(frame))[:missing])


@pytest.mark.parametrize("cluster", ["benchmark", "half"])
@pytest.mark.parametrize("runs", ["", " + (1 | benchmark:algorithm) + (1 | benchmark:seed)"])
def test_balanced_tables_have_the_products_of_any_table(cluster, runs):
    fit = lt.fit_lmm(f"score ~ algorithm + (1 | benchmark){runs}", crossed_table())
    assert fit.problem.anova is not None
    short = cluster_robust(fit, cluster)
    fit.problem.__dict__["anova"] = None  # as of a table that is not balanced
    whole = cluster_robust(fit, cluster)
    L = np.vstack([np.eye(4), [0, 1, -1, 0]])
    assert short.cov(L) == approx(whole.cov(L), rel=1e-10)
    assert short.df(L) == approx(whole.df(L), rel=1e-10)
    assert short.engine.alike == (cluster == "benchmark")


def test_degrees_of_freedom_of_pairs_are_those_of_each_row_by_itself():
    fit = lt.fit_lmm("score ~ algorithm + (1 | benchmark)", crossed_table(missing=17))
    robust = cluster_robust(fit, "benchmark")
    i, j = np.triu_indices(4, 1)
    L = np.column_stack([np.ones(4), np.eye(4)[:, 1:]])
    L = np.vstack([L, L[i] - L[j]])
    assert not robust.engine.alike
    assert robust.engine._df_shared(Functions.of(L), robust.root) == approx(
        robust.engine._df_by_rows(L @ robust.root), rel=1e-10
    )
