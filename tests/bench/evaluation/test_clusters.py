"""Items in clusters: closed forms of the error on these tasks, what it says, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, stats

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, DesignError

ROLES = {"model": "model", "task": "task", "item": "item", "score": "right", "cluster": "passage"}


def answers(sizes: tuple[tuple[int, ...], ...] = ((4,) * 6, (4,) * 8), k: int = 2, seed: int = 1) -> pd.DataFrame:
    """0/1 answers to items of passages of `sizes`, by task, with advantages of models on passages."""
    rng = np.random.default_rng(seed)
    rows = []
    for task, passages in enumerate(sizes):
        for passage, size in enumerate(passages):
            lead = rng.normal(0.6, 0.25, k)
            for model in range(k):
                for item, y in enumerate(rng.random(size) < np.clip(lead[model], 0.05, 0.95)):
                    rows.append(("ABCD"[model], f"t{task}", f"t{task}p{passage}", f"{passage}.{item}", int(y)))
    return pd.DataFrame(rows, columns=["model", "task", "passage", "item", "right"])


def test_equal_clusters_of_one_task_give_the_paired_t_test_of_their_means():
    table = answers(((5,) * 9,))
    row = lt.evaluate(table, **ROLES).to_frame().iloc[0]
    y = table.pivot_table("right", "passage", "model")
    want = stats.ttest_rel(y["A"], y["B"])
    assert row["estimate_these"] == pytest.approx((y["A"] - y["B"]).mean())
    assert (row["df_these"], row["p_value_these"]) == pytest.approx((8.0, want.pvalue))


def test_over_tasks_the_variances_of_their_cluster_means_add_up():
    table = answers(k=3)
    row = lt.evaluate(table, **ROLES).to_frame().query("left == 'A' and right == 'C'").iloc[0]
    means = table.pivot_table("right", ["task", "passage"], "model")
    d = (means["A"] - means["C"]).groupby("task")
    v, f = d.var() / d.size(), d.size() - 1
    assert row["se_these"] == pytest.approx(np.sqrt(v.sum()) / 2)
    assert row["df_these"] == pytest.approx(v.sum() ** 2 / (v**2 / f).sum())


def test_unequal_clusters_have_the_variance_and_degrees_of_freedom_of_cr2():
    table = answers(((2, 9, 5, 1, 6, 3),))
    row = lt.evaluate(table, **ROLES).to_frame().iloc[0]
    wide = table.pivot(index=["passage", "item"], columns="model", values="right").reset_index()
    d = (wide["A"] - wide["B"]).to_numpy(dtype=float)
    n, codes = len(d), wide["passage"].astype("category").cat.codes.to_numpy()
    H = np.full((n, n), 1.0 / n)
    e, roots, variance = d - d.mean(), [], 0.0
    for c in np.unique(codes):
        own = np.flatnonzero(codes == c)
        A = np.linalg.inv(linalg.sqrtm(np.eye(len(own)) - H[np.ix_(own, own)]))
        variance += float(np.ones(len(own)) @ A @ e[own]) ** 2 / n**2
        roots.append((np.eye(n) - H)[:, own] @ A @ np.ones(len(own)) / n)
    G = np.array(roots) @ np.array(roots).T  # Satterthwaite, were items independent
    assert row["se_these"] ** 2 == pytest.approx(variance)
    assert row["df_these"] == pytest.approx(np.trace(G) ** 2 / np.trace(G @ G))
    assert row["df_these"] < 5


def test_models_that_answered_other_items_of_the_same_passages_share_their_difficulty():
    table = answers(((6,) * 8,))
    part = table["item"].str[-1].astype(int)
    apart = table[(table["model"] == "A") & (part < 3) | (table["model"] == "B") & (part >= 3)]
    row = lt.evaluate(apart, **ROLES).to_frame().iloc[0]
    y = apart.pivot_table("right", "passage", "model")
    assert row["se_these"] == pytest.approx(stats.sem(y["A"] - y["B"]))


def test_the_design_effect_is_that_of_the_variances_and_is_said():
    table = answers(k=3, seed=4)
    found = lt.evaluate(table, **ROLES)
    alone = lt.evaluate(table, **{**ROLES, "cluster": None})
    ratio = np.median((found.pairs["se_these"] / alone.pairs["se_these"]) ** 2)
    row = found.to_frame("clusters").iloc[0]
    assert (row["cluster"], row["n_clusters"], row["n_items"]) == ("passage", 14, 56)
    assert (row["design_effect"], row["n_effective"]) == pytest.approx((ratio, 56 / ratio))
    said = f"56 items in 14 passages: the variance of a difference on these tasks is {ratio:.2f} times that of"
    assert said in " ".join(found.sentences())
    assert "passages of items are the sample" in found.facts[0]
    pd.testing.assert_series_equal(found.pairs["se_like"], alone.pairs["se_like"])
    assert not len(alone.clusters)
    with pytest.raises(DesignError, match=r"Items come in passages, .* evaluate\(\.\.\., item='passage'\)"):
        found.plan(effect=0.1)


def test_a_model_that_solved_everything_has_wilsons_interval_of_its_clusters():
    table = answers(((5,) * 12,))
    table.loc[table["model"] == "B", "right"] = 1
    row = lt.evaluate(table, **ROLES).to_frame("models").set_index("model").loc["B"]
    z2 = stats.t.isf(0.025, 11) ** 2
    assert row["ci_low_these"] == pytest.approx(12 / (12 + z2))


def test_a_task_with_one_cluster_has_no_test_on_these_tasks():
    found = lt.evaluate(answers(((6,), (3, 3, 3))), **ROLES)
    assert found.pairs["p_value_these"].isna().all()
    assert "1 task (t0) with one passage of items: nothing says" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"passage": lambda t: t["passage"].str[2:]}, DataError, "must be nested in the task, and 6 passages .p0, p1"),
        ({"passage": lambda t: t["task"]}, DesignError, "'passage', of which each task has one: the passages are the"),
        (
            {"passage": lambda t: t["task"] + t["item"]},
            ArgumentError,
            "each has one item: nothing is clustered, so leave",
        ),
        ({"item": lambda t: t["item"].str[2:]}, DataError, "8 items .such as 0. are in several passages"),
    ],
)
def test_what_is_no_cluster_is_refused(change, kind, message):
    with pytest.raises(kind, match=message):
        lt.evaluate(answers().assign(**change), **ROLES)
