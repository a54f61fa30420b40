"""Shrunken differences on each benchmark, and clusters of benchmarks."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from levels import first
from mixed_model_equations import henderson
from pytest import approx
from refusals import refusal
from scipy import stats
from scipy.linalg import block_diag
from study import as_runs, make_table

import lmemtest as lt
from lmemtest.bench.benchmark.benchmark_clusters import benchmark_clusters, jaccard, silhouettes
from lmemtest.bench.benchmark.benchmark_effects import _unequal_noise, benchmark_effects
from lmemtest.errors import DesignError
from lmemtest.lmm.engine import prediction
from lmemtest.lmm.formula import parse_formula
from lmemtest.lmm.model.predictions import shapes


def study(
    rng: int | np.random.Generator = 1,
    *,
    k: int = 3,
    b: int = 8,
    n: int = 4,
    priors: tuple[str, ...] = (),
    interaction: float = 1.0,
    advantages: np.ndarray | None = None,
) -> pd.DataFrame:
    """A balanced table; `advantages` are those of the tools (rows) on the tasks (columns)."""
    rng = np.random.default_rng(rng)
    advantages = rng.normal(scale=interaction, size=(k, b)) if advantages is None else advantages
    sizes = [f"A{i}" for i in range(k)], [f"t{j}" for j in range(b)], n
    options = {"sds": {"benchmark": 2.0, "benchmark:seed": 0.7}, "shift": 0.5 * np.arange(k), "rng": rng}
    frame = make_table(*sizes, priors=priors or None, **options, algorithm="tool", benchmark="task")
    frame["loss"] += advantages[tuple(frame[name].str[1:].astype(int) for name in ("tool", "task"))]
    return frame


def effect_rows(fit: lt.LmmFit, cells: pd.DataFrame) -> np.ndarray:
    """Coefficients of all effects but those of seeds in the means of cells; effects that the fit lacks have none."""
    parts = [fit.design.rows(cells)]
    for i, term in enumerate(fit.design.random):
        basis, codes = fit.design.random_rows(i, cells)
        Z = np.einsum("nk,nq->nqk", basis, np.eye(len(term.levels) + 1)[codes][:, :-1]).reshape(len(cells), -1)
        parts.append(Z * (0.0 if "seed" in fit.design.parsed.bars[i].groups else 1.0))
    return np.hstack(parts)


def estimation(fit: lt.LmmFit, target: np.ndarray) -> float:
    """What the estimated variances add to the variance of an error: twice that of the weights, by differences.

    `target` has the coefficients of the fixed and of all random effects.
    """
    problem, at = fit.problem, fit.optim.theta
    X, precision = fit.design.X, fit.row_precision()
    terms = [np.einsum("nk,nq->nqk", t.basis, np.eye(len(t.levels))[t.codes]) for t in fit.design.random]
    Z = np.hstack([term.reshape(len(X), -1) for term in terms])
    L, K = np.split(target, [X.shape[1]])

    def variances(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        factors = [np.linalg.solve(R, F) for R, F in zip(problem.R, problem.unpack(x), strict=True)]
        Sigma = block_diag(*(np.kron(np.eye(q), F @ F.T) for F, (q, _) in zip(factors, shapes(fit), strict=True)))
        omega = fit.cells.n * precision
        if problem.strata is not None:
            held, moved = problem.strata.precision[1:], problem.split(x)[1]
            for p, now, log_tau in zip(held, problem.split(at)[1], moved, strict=True):
                omega = omega * np.where(np.isclose(precision, p * np.exp(now)), np.exp(log_tau - now), 1.0)
        return Sigma, np.diag(1.0 / omega) + Z @ Sigma @ Z.T

    def weights(x: np.ndarray) -> np.ndarray:
        Sigma, V = variances(x)
        C = np.linalg.solve(V, np.column_stack([Z @ Sigma @ K, X]))
        return C[:, 0] + C[:, 1:] @ np.linalg.solve(X.T @ C[:, 1:], L - X.T @ C[:, 0])

    steps = 1e-5 * np.eye(len(at))
    moves = np.array([(weights(at + step) - weights(at - step)) / 2e-5 for step in steps])
    spread = moves @ variances(at)[1] @ moves.T
    return 2.0 * fit.scale * float(np.sum(fit.curvature.theta_covariance() * spread))


# ---------------------------------------------------------------------- shrunken differences


def test_two_algorithms_are_shrunken_by_the_balanced_formula() -> None:
    frame = study(1, k=2, b=10, n=5)
    found = benchmark_effects(as_runs(frame), contrast="pairs")
    table, fit = found.to_frame(), found.fit
    v, w = 2.0 * fit.covariances[1][0, 0], 2.0 * fit.scale
    assert fit.design.random[1].group == "task:tool"
    k = v / (v + w / 5)
    assert table["estimate"].to_numpy() == approx(
        (table["overall"] + k * (table["observed"] - table["overall"])).to_numpy(), rel=1e-5
    )
    means = frame.groupby(["task", "tool"])["loss"].mean().unstack()
    assert table["observed"].to_numpy() == approx((means["A0"] - means["A1"]).to_numpy())
    # error of the shrunken difference, of the overall one that it leans on, and of k: twice (Prasad & Rao 1990)
    se2 = v * (1 - k) + (1 - k) ** 2 * (v + w / 5) / 10
    assert fit.covariances[2][0, 0] > 0  # so runs of one seed are compared: 4 differences on each of 10 tasks
    se2 += 4.0 * (1 - k) * w / 5 * (1 / 10 + 9 / 10 / 40)
    assert table["se"].to_numpy() ** 2 == approx(np.full(10, se2), rel=1e-5)
    assert found.between_sd["A0", "A1"] == approx(np.sqrt(v))


@pytest.mark.daily(1)
@pytest.mark.parametrize("priors", [(), ("bad", "good")])
@pytest.mark.parametrize("dispersion", [None, "task"])
def test_estimates_and_errors_are_those_of_the_mixed_model_equations(priors, dispersion) -> None:
    frame = study(2, priors=priors).drop(index=[3, 17])
    found = benchmark_effects(as_runs(frame), simultaneous=False, dispersion=dispersion)
    fit = found.fit
    tools = ["A0", "A1", "A2"]
    grid = pd.DataFrame(
        [(t, j, p) for t in [f"t{i}" for i in range(8)] for p in (priors or ("",)) for j in tools],
        columns=["task", "tool", "prior"],
    ).assign(seed=0)
    effects = [fit.kept_params, *(modes.ravel() for modes in fit.modes)]
    rows = effect_rows(fit, grid)
    per = len(priors) or 1
    want, se = [], []
    C = henderson(fit)
    for tool, task in itertools.product(range(3), range(8)):
        w = np.zeros(len(grid))
        w[task * 3 * per : (task + 1) * 3 * per] = np.tile(np.eye(3)[tool] - 1 / 3, per) / per
        want.append(w @ rows @ np.concatenate(effects))
        se.append(np.sqrt(w @ rows @ C @ rows.T @ w + estimation(fit, w @ rows)))
    table = found.to_frame()
    assert table["estimate"].to_numpy() == approx(np.array(want), rel=1e-7, abs=1e-9)
    assert table["se"].to_numpy() == approx(np.array(se), rel=1e-5)


def test_budgets_are_averaged_and_instances_kept_apart() -> None:
    frame = study(3, priors=("bad", "good"))
    twice = pd.concat([frame.assign(budget=1), frame.assign(budget=2, loss=frame["loss"] + 1.0)])
    one = benchmark_effects(as_runs(frame)).to_frame()
    two = benchmark_effects(as_runs(twice, budget="budget")).to_frame()
    assert two["estimate"].to_numpy() == approx(one["estimate"].to_numpy(), rel=1e-4, abs=1e-5)
    apart = benchmark_effects(as_runs(frame), by="instance").to_frame()
    assert len(apart) == 2 * len(one)
    assert apart["benchmark"].iloc[:2].tolist() == ["t0 / bad", "t0 / good"]
    halves = apart["estimate"].to_numpy().reshape(-1, 2).mean(axis=1)
    assert halves == approx(one["estimate"].to_numpy(), rel=1e-7, abs=1e-9)


@pytest.mark.level(2)
def test_deviations_sum_to_zero_and_mirror_for_two_algorithms() -> None:
    table = benchmark_effects(as_runs(study(4))).to_frame()
    assert table.groupby("benchmark")["estimate"].sum().abs().max() < 1e-9
    two = benchmark_effects(as_runs(study(7, k=2))).to_frame()
    pair = benchmark_effects(as_runs(study(7, k=2)), contrast="pairs").to_frame()
    assert 2.0 * two["estimate"].iloc[:8].to_numpy() == approx(pair["estimate"].to_numpy())
    assert 2.0 * two["ci_high"].iloc[:8].to_numpy() == approx(pair["ci_high"].to_numpy(), rel=1e-6)
    single = benchmark_effects(as_runs(study(4)), simultaneous=False)
    assert (table["ci_high"] - table["ci_low"] > 1.2 * (single.table["ci_high"] - single.table["ci_low"])).all()
    assert "not simultaneous" in single.summary()


def test_no_interaction_means_no_intervals() -> None:
    frame = study(6, interaction=0.0)
    cell = frame.groupby(["tool", "task"])["loss"].transform("mean")
    additive = frame.groupby("tool")["loss"].transform("mean") + frame.groupby("task")["loss"].transform("mean")
    frame["loss"] += additive - frame["loss"].mean() - cell
    found = benchmark_effects(as_runs(frame))
    table = found.to_frame()
    assert table["ci_low"].isna().all()
    assert table["estimate"].to_numpy() == approx(table["overall"].to_numpy(), abs=1e-9)
    assert "does not show that they are equal" in found.notes[0]
    assert " ".join(found.sentences()) == "No difference between algorithms is seen to change between benchmarks."


def dense_prediction(fit: lt.LmmFit, frame: pd.DataFrame, weights: np.ndarray, cells: pd.DataFrame):
    """Henderson's prediction and its error from the whole covariance matrix of the rows and the target."""
    rows = pd.concat([frame, cells.assign(loss=0.0, seed=-1)], ignore_index=True)
    X = np.stack([np.ones(len(rows)), *((rows["tool"] == t).to_numpy(float) for t in ("A1", "A2"))], axis=1)
    V = np.zeros((len(rows), len(rows)))
    for bar, S in zip(fit.design.parsed.bars, fit.covariances, strict=True):
        key = rows[list(bar.groups)].astype(str).agg("|".join, axis=1).to_numpy()
        V += S[0, 0] * (key[:, None] == key[None, :])
    n = len(frame)
    Vyy = V[:n, :n] + fit.scale * np.eye(n)
    c, var = V[:n, n:] @ weights, weights @ V[n:, n:] @ weights
    Xy, L = X[:n], weights @ X[n:]
    solve = np.linalg.solve
    phi = np.linalg.inv(Xy.T @ solve(Vyy, Xy))
    y = frame["loss"].to_numpy()
    b = phi @ Xy.T @ solve(Vyy, y)
    d = L - Xy.T @ solve(Vyy, c)
    return L @ b + c @ solve(Vyy, y - Xy @ b), np.sqrt(var - c @ solve(Vyy, c) + d @ phi @ d)


@pytest.mark.parametrize("contrast", first(["pairs", "mean"]))
def test_where_an_algorithm_was_not_run_its_effect_is_extrapolated_and_marked(contrast) -> None:
    frame = study(7).query("not (tool == 'A0' and task == 't3') and not (tool in ['A0', 'A1'] and task == 't5')")
    found = benchmark_effects(as_runs(frame), contrast=contrast, simultaneous=False)
    table, fit, tools = found.to_frame(), found.fit, ["A0", "A1", "A2"]
    gone = {"pairs": {("t3", "A0"), ("t5", "A0"), ("t5", "A1")}, "mean": {(t, a) for t in ("t3", "t5") for a in tools}}
    marked = table[table["extrapolated"]]
    assert set(zip(marked["benchmark"], marked["algorithm"], strict=True)) == gone[contrast]
    assert table["observed"].isna().tolist() == table["extrapolated"].tolist()
    for row in table[table["benchmark"].isin(["t1", "t3", "t5"])].itertuples():
        weights = np.array([float(row.algorithm == t) for t in tools])
        weights -= 1 / 3 if contrast == "mean" else np.array([float(row.versus == t) for t in tools])
        cells = pd.DataFrame({"tool": tools, "task": row.benchmark})
        want, error = dense_prediction(fit, frame, weights, cells)
        added = estimation(fit, weights @ effect_rows(fit, cells.assign(seed=0)))
        assert (row.estimate, row.se) == approx((want, np.sqrt(error**2 + added)), rel=1e-6)
    widest = table.groupby("extrapolated")["se"].max()
    assert widest[True] > 1.3 * widest[False]
    v = fit.covariances[1][0, 0]
    assert fit.design.random[1].group == "task:tool"
    assert list(found.between_sd.values()) == approx([np.sqrt(v * (2.0 if contrast == "pairs" else 2 / 3))] * 3)


def test_a_note_names_who_was_not_run_and_the_sentence_counts_apart() -> None:
    frame = study(7).query("not (tool == 'A0' and task == 't3') and not (tool == 'A1' and task == 't5')")
    found = benchmark_effects(as_runs(frame), contrast="pairs")
    assert found.notes[-1] == (
        "On 2 of 8 benchmarks some algorithm was not run (t3: A0; t5: A1). Rows marked extrapolated are what the model "
        "expects of it there, as if it were missing by chance; an algorithm that failed there is probably worse."
    )
    assert " of 20 intervals (simultaneous for each pair separately) exclude zero" in " ".join(found.sentences())
    assert " ".join(found.sentences()).endswith(" 4 more are extrapolated to where an algorithm was not run.")
    complete = benchmark_effects(as_runs(study(7)), contrast="pairs")
    assert not complete.table["extrapolated"].any()
    assert "extrapolated" not in " ".join(complete.sentences())


def test_no_benchmark_with_all_algorithms_leaves_extrapolations_only() -> None:
    frame = study(7, b=9)
    frame = frame[frame["tool"].str[-1].astype(int) != frame["task"].str[-1].astype(int) % 3]
    found = benchmark_effects(as_runs(frame))
    assert found.table["extrapolated"].all()
    assert " ".join(found.sentences()) == (
        "No benchmark has runs of all algorithms of a comparison: all 27 intervals are extrapolated."
    )


def test_a_gap_at_one_level_of_a_metafeature_is_a_gap() -> None:
    frame = study(7, priors=("bad", "good")).query("not (tool == 'A0' and task == 't3' and prior == 'good')")
    runs = as_runs(frame)
    whole = benchmark_effects(runs, contrast="pairs").to_frame()
    assert whole.loc[whole["extrapolated"], "benchmark"].tolist() == ["t3", "t3"]
    assert whole.loc[whole["extrapolated"], "n_runs"].tolist() == [12, 12]
    apart = benchmark_effects(runs, contrast="pairs", by="instance").to_frame()
    assert apart.loc[apart["extrapolated"], "benchmark"].tolist() == ["t3 / good", "t3 / good"]


def test_a_reversal_is_named() -> None:
    advantages = np.zeros((2, 8))
    advantages[0] = [-3.0] * 7 + [6.0]
    advantages[0] += np.linspace(-0.5, 0.5, 8)
    found = benchmark_effects(as_runs(study(8, k=2, n=10, advantages=advantages)), contrast="pairs")
    assert "1 of them against the overall difference, such as A0 versus A1 on t7." in " ".join(found.sentences())
    drivers = found.drivers(ddf="satterthwaite")
    assert drivers.to_frame()["level"].tolist() == [f"t{i}" for i in range(8)]
    assert drivers.to_frame().set_index("level")["largest_shift"].abs().idxmax() == "t7"


def test_unequal_noise_gets_residual_variances_of_its_own() -> None:
    frame = study(9)
    alike = benchmark_effects(as_runs(frame))
    assert alike.fit.dispersion is None
    frame.loc[frame["task"] == "t1", "loss"] *= 100.0
    found, own = (benchmark_effects(as_runs(frame), **given, rng=1) for given in ({}, {"dispersion": "task"}))
    assert "residual variance by task; estimate:" in found.facts[0]
    pd.testing.assert_frame_equal(found.table, own.table)
    common = benchmark_effects(as_runs(frame), dispersion=None)
    assert common.fit.dispersion is None
    assert "times as much on the noisiest benchmark" in common.notes[-1]
    assert not [n for n in found.notes if "noisiest" in n]
    frame.loc[frame["task"] == "t2", "loss"] = 1.0  # a benchmark without noise has no variance of its own
    assert benchmark_effects(as_runs(frame)).fit.dispersion is None


def test_noise_that_differs_by_chance_has_no_note() -> None:
    frame = study(1, k=2, b=20, n=3)
    sd = np.sqrt(frame.groupby(["task", "tool"])["loss"].var().groupby("task").mean())
    assert sd.max() > 3.0 * sd.min()
    assert not [note for note in benchmark_effects(as_runs(frame)).notes if "noisiest" in note]


@pytest.mark.parametrize("thin", [False, True])
def test_the_noise_is_compared_by_bartletts_test(thin) -> None:
    """A benchmark with one degree of freedom is not in it."""
    frame = study(9, k=2, n=4)
    runs = as_runs(frame)
    if thin:
        few = [part.head(2 - i) for i, (_, part) in enumerate(frame[frame["task"] == "t0"].groupby("tool"))]
        frame = frame[frame["task"] != "t0"]
        runs = as_runs(pd.concat([*few, frame]))
    scatter = (frame["loss"] - frame.groupby(["task", "tool"])["loss"].transform("mean")) ** 2
    df, s2 = 6.0, (scatter.groupby(frame["task"]).sum() / 6.0).to_numpy()
    k = len(s2)
    statistic = df * (k * np.log(s2.mean()) - np.log(s2).sum()) / (1 + (k / df - 1 / (k * df)) / (3 * (k - 1)))
    p = float(stats.chi2.sf(statistic, k - 1))
    for level, chosen in ((p * 1.001, "task"), (p * 0.999, None)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("lmemtest.bench.benchmark.benchmark_effects._UNLIKE_P", level)
            assert _unequal_noise(runs, parse_formula("loss ~ tool + (1 | task)")) == chosen


def test_an_erratic_algorithm_gets_a_variance_of_its_own() -> None:
    advantages = np.random.default_rng(3).normal(size=(4, 12)) * np.array([5.0, 1.0, 1.0, 1.0])[:, None]
    runs = as_runs(study(10, k=4, b=12, advantages=advantages))
    found = benchmark_effects(runs)
    assert "diag(tool | task)" in found.fit.formula
    assert found.between_sd["A0", "mean"] > 2.0 * found.between_sd["A1", "mean"]
    given = benchmark_effects(runs, formula="loss ~ tool + (1 | task) + (1 | task:tool)")
    assert "diag" not in given.fit.formula
    assert "diag" not in benchmark_effects(as_runs(study(10, k=4, b=12))).fit.formula


def test_what_is_refused() -> None:
    frame = study(1)
    assert refusal(lambda: benchmark_effects(as_runs(frame).filter(task="t0"))) == (
        "runs has one benchmark only, 't0', and benchmarks are compared by what differs between benchmarks. Give at "
        "least two; many more are needed for a precise answer."
    )
    assert refusal(
        lambda: benchmark_effects(as_runs(frame), formula="loss ~ tool + (1 | task)"), lt.errors.DesignError
    ) == (
        "the model 'loss ~ tool + (1 | task)' lets no difference between algorithms change from benchmark to "
        "benchmark. Add (1 | task:tool) to the formula, which takes several runs of each algorithm on each benchmark."
    )
    once = as_runs(frame.query("seed == 0").drop(columns="seed"), seed=None)
    with pytest.raises(lt.errors.DesignError, match=r"Add \(1 \| task:tool\) to the formula, which takes several runs"):
        benchmark_effects(once)
    assert refusal(
        lambda: benchmark_effects(as_runs(frame), formula="loss ~ tool * seed + (1 | task:tool)"),
        lt.errors.ArgumentError,
    ) == (
        "formula has 'seed' in its fixed part, on which differences on a benchmark would depend. Use 'task', 'tool' "
        "only, or take one level first: runs.filter(...)."
    )
    for option in ({"contrast": "x"}, {"by": "x"}, {"simultaneous": "x"}, {"alpha": 1.0}):
        with pytest.raises(lt.errors.ArgumentError):
            benchmark_effects(as_runs(frame), **option)


@pytest.mark.slow
def test_intervals_hold_the_true_difference_of_a_benchmark() -> None:
    """300 studies of 10 benchmarks: pointwise over all rows, simultaneous per study; 3.3 binomial standard errors."""
    rng = np.random.default_rng(11)
    single, joint, n = [], [], 300
    for _ in range(n):
        advantages = rng.normal(size=(2, 10))
        runs = as_runs(study(rng, k=2, b=10, n=4, advantages=advantages))
        truth = advantages[0] - advantages[1] - 0.5
        for simultaneous, hits in ((False, single), (True, joint)):
            table = benchmark_effects(runs, contrast="pairs", simultaneous=simultaneous).to_frame()
            inside = (table["ci_low"] <= truth) & (truth <= table["ci_high"])
            if table["ci_low"].notna().all():
                hits.append(inside.all() if simultaneous else inside.mean())
    assert len(joint) > 0.95 * n
    assert np.mean(single) == approx(0.95, abs=0.02)
    assert np.mean(joint) == approx(0.95, abs=3.3 * np.sqrt(0.95 * 0.05 / n))


@pytest.mark.slow
def test_intervals_hold_the_true_difference_where_an_algorithm_was_not_run() -> None:
    """300 studies with one gap; 3.3 binomial standard errors."""
    rng = np.random.default_rng(12)
    hits, n = [], 300
    for _ in range(n):
        advantages = rng.normal(size=(2, 12))
        frame = study(rng, k=2, b=12, n=4, advantages=advantages).query("not (tool == 'A0' and task == 't3')")
        table = benchmark_effects(as_runs(frame), contrast="pairs", simultaneous=False).to_frame()
        row = table[table["extrapolated"]].iloc[0]
        if np.isfinite(row["ci_low"]):
            hits.append(row["ci_low"] <= advantages[0, 3] - advantages[1, 3] - 0.5 <= row["ci_high"])
    assert len(hits) > 0.95 * n
    assert np.mean(hits) == approx(0.95, abs=3.3 * np.sqrt(0.95 * 0.05 / n))


# ---------------------------------------------------------------------- clusters


def grouped(rng: int, *, n: int = 6, size: float = 3.0) -> pd.DataFrame:
    """Tasks t0 to t4 favour A0, t5 to t9 favour A2."""
    advantages = np.zeros((3, 10))
    advantages[0, :5] = -size
    advantages[2, 5:] = -size - 1.0
    return study(rng, b=10, n=n, advantages=advantages)


def test_groups_that_are_there_are_found_and_stable() -> None:
    found = benchmark_clusters(as_runs(grouped(1)), rng=1)
    assert found.n_clusters == 2
    assert sorted(found.clusters["members"]) == ["t0, t1, t2, t3, t4", "t5, t6, t7, t8, t9"]
    assert found.clusters["decision"].tolist() == ["stable", "stable"]
    assert " ".join(found.sentences()) == "10 benchmarks in 2 clusters, all of them stable when the runs are redrawn."
    assert found.to_frame()["cluster"].tolist() == [1] * 5 + [2] * 5
    assert np.diag(found.together).tolist() == [1.0] * 10


def test_the_tree_is_scipys_on_standardised_deviations() -> None:
    from scipy.cluster.hierarchy import cophenet, linkage
    from scipy.spatial.distance import pdist

    frame = study(12, b=6)
    found = benchmark_clusters(as_runs(frame), scale="shape", method="ward", n_draws=0, n_clusters=3)
    means = frame.groupby(["task", "tool"])["loss"].mean().unstack()
    deviations = means.sub(means.mean(axis=1), axis=0)
    want = deviations.div(deviations.std(axis=1, ddof=0), axis=0)
    assert found.profiles.to_numpy() == approx(want.to_numpy())
    tree = linkage(want.to_numpy(), "ward")
    assert found.linkage == approx(tree)
    assert found.cophenetic == approx(cophenet(tree, pdist(want.to_numpy()))[0])
    assert found.clusters["jaccard"].isna().all()
    assert found.clusters["decision"].tolist() == ["unknown"] * 3
    noise = benchmark_clusters(as_runs(frame), scale="noise", n_draws=0)
    sd = frame.groupby(["task", "tool"])["loss"].var().unstack().mean(axis=1) ** 0.5
    assert noise.profiles.to_numpy() == approx(deviations.div(sd, axis=0).to_numpy())
    assert benchmark_clusters(as_runs(study(15, k=2)), n_draws=5, rng=1).scale == "noise"  # two have one shape


def test_jaccard_and_silhouettes_by_hand() -> None:
    labels = np.array([0, 0, 1, 1])
    assert jaccard(labels, labels[None, :]).tolist() == [[1.0, 1.0]]
    assert jaccard(labels, np.array([[0, 1, 0, 1]])).tolist() == [[1 / 3, 1 / 3]]
    points = np.array([0.0, 1.0, 5.0, 7.0])
    distances = np.abs(points[:, None] - points[None, :])
    want = [(6 - 1) / 6, (5 - 1) / 5, (4.5 - 2) / 4.5, (6.5 - 2) / 6.5]
    assert silhouettes(distances, labels) == approx(np.array(want))


@pytest.mark.parametrize("seed", ["seed", None])
def test_stability_knows_neither_names_of_seeds_nor_the_order_of_rows(seed: str | None) -> None:
    """Of scores with many ties, the share of redrawn tables that keep a benchmark went from 0.64 to 0.51."""
    frame = study(17, b=8, n=5, interaction=0.0)
    frame = frame.assign(loss=frame["loss"].round())
    frame["seed"] = frame["seed"].astype(int)
    others = frame.assign(seed=frame["seed"].map({0: 9, 1: 3, 2: 7, 3: 0, 4: 5})).sample(frac=1.0, random_state=1)
    want, got = (
        benchmark_clusters(as_runs(table if seed else table.drop(columns="seed"), seed=seed), n_draws=50, rng=1)
        for table in (frame, others)
    )
    assert want.to_frame()["kept"].between(0.01, 0.99).any()  # chance decides
    for name in ("benchmarks", "clusters", "together", "profiles"):
        pd.testing.assert_frame_equal(want.tables[name], got.tables[name], check_exact=True)


def test_redrawing_is_reproducible_and_moves_what_is_noise() -> None:
    runs = as_runs(study(13, b=8, n=3, interaction=0.0))
    left, right = (benchmark_clusters(runs, rng=5, n_draws=60) for _ in range(2))
    pd.testing.assert_frame_equal(left.clusters, right.clusters)
    assert (left.clusters["decision"] != "stable").any()
    assert "should not be interpreted" in " ".join(left.sentences())


def test_conditions_are_part_of_a_profile() -> None:
    frame = study(14, priors=("bad", "good"))
    found = benchmark_clusters(as_runs(frame), n_draws=10, rng=1)
    assert list(found.profiles.columns) == [f"A{i} / {p}" for p in ("bad", "good") for i in range(3)]
    assert found.profiles.to_numpy().reshape(8, 2, 3).sum(axis=2) == approx(np.zeros((8, 2)), abs=1e-12)


def test_single_runs_cannot_be_redrawn() -> None:
    once = as_runs(study(16).query("seed == 0").drop(columns="seed"), seed=None)
    found = benchmark_clusters(once)
    assert (found.n_draws, found.notes[-1]) == (
        0,
        "Some algorithm was run only once on some benchmark, so runs cannot be redrawn. Repeat runs with other seeds.",
    )
    assert " ".join(found.sentences()).endswith("without repeated runs nothing is known of their stability.")
    assert refusal(lambda: benchmark_clusters(once, scale="noise")) == (
        "scale='noise' needs runs that differ on every benchmark; on 't0' they do not, or are not repeated. Use "
        "scale='shape', or leave the benchmark out: runs.filter(...)."
    )


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ("task in ['t0', 't1', 't2']", {}, "runs has 3 benchmarks, and groups of so few say nothing. Give at least "
         "four, or look at each of them: lmemtest.benchmark_effects(runs)."),
        ("seed >= 0", {"n_clusters": 8}, "n_clusters must lie between 2 and 7, one less than the benchmarks, got 8."),
        ("not (tool == 'A0' and task == 't3')", {}, "tool 'A0' was not run on 't3', so its relative performance there "
         "is not known. Leave the algorithm or the benchmark out: runs.filter(...)."),
    ],
)  # fmt: skip
def test_what_clusters_refuse(rows, options, words) -> None:
    runs = as_runs(study(1).query(rows))
    assert refusal(lambda: benchmark_clusters(runs, **options)) == words


@pytest.mark.slow
def test_clusters_of_pure_noise_are_rarely_called_stable() -> None:
    """150 tables without any difference between benchmarks; the page quotes the rates."""
    rng = np.random.default_rng(17)
    claimed = all_stable = 0
    for _ in range(150):
        runs = as_runs(study(rng, k=4, b=12, n=8, interaction=0.0))
        found = benchmark_clusters(runs, n_draws=100, rng=rng)
        claimed += "no grouping is stable" not in " ".join(found.sentences())
        all_stable += bool((found.clusters["decision"] == "stable").all())
    assert claimed / 150 < 0.15
    assert all_stable / 150 < 0.05


def test_priorband_groups_the_image_benchmarks(data_dir) -> None:
    runs = as_runs(pd.read_parquet(data_dir / "priorband.parquet"), score="value", budget="used_fidelity")
    found = benchmark_clusters(runs, rng=1)
    effects = benchmark_effects(runs)
    jahs = found.to_frame().set_index("benchmark")["cluster"][["JAHS-C10", "JAHS-CH", "JAHS-FM"]]
    assert jahs.nunique() == 1
    assert len(effects.to_frame()) == 36


def test_comparisons_are_predicted_one_by_one(monkeypatch):
    """Intervals need the errors of a comparison on all benchmarks, and not between comparisons."""
    asked = []
    covariance = prediction.covariance
    monkeypatch.setattr(prediction, "covariance", lambda *at: asked.append(len(at[3])) or covariance(*at))
    found = benchmark_effects(as_runs(study(k=4, b=7)))
    assert len(found.table) == 28
    assert asked == [7] * 4


def test_more_benchmarks_than_fit_into_memory_are_refused_before_anything_is_made(monkeypatch) -> None:
    runs = as_runs(study(1, k=3, b=10, n=2))
    monkeypatch.setattr("lmemtest.bench.benchmark.benchmark_effects._MOST_WEIGHTS", 3 * 3 * 9**2)
    with pytest.raises(
        DesignError, match=r"3 differences on 10 benchmarks of 3 .* Look at up to 9 benchmarks at a time"
    ):
        benchmark_effects(runs)


def test_a_difference_that_was_seen_has_two_degrees_of_freedom_at_least_and_one_that_was_not_its_own():
    table = study(16, k=2, b=5, n=5, interaction=0.15)  # 0.61 of its own, and intervals of 52
    runs = as_runs(table)
    options = {"formula": "loss ~ tool + (1|task) + (1|task:tool)", "dispersion": None, "simultaneous": False}
    found = benchmark_effects(runs, contrast="pairs", **options).to_frame()
    assert (found["df"] == 2.0).all()
    half = stats.t.isf(0.025, 2.0) * found["se"]
    assert (found["ci_high"] - found["estimate"]).to_numpy() == approx(half.to_numpy())
    gone = table[~((table["task"] == "t0") & (table["tool"] == "A1"))]
    gaps = benchmark_effects(as_runs(gone), contrast="pairs", **options).to_frame().set_index("benchmark")
    assert gaps.loc["t0", "extrapolated"]
    assert gaps.loc["t0", "df"] < 2.0
