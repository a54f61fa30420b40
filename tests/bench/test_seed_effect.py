"""Seed dependency: the paper's synthetic case, copies, pairing, and what cannot be tested."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refusal
from study import as_runs

import lmemtest as lt
from lmemtest.bench.checks.seed_effect import seed_effect
from lmemtest.errors import ArgumentError, DataError, DesignError

ALGORITHMS = ("A-0", "A-1", "A-2")


def appendix_c(rng, repeats=4):
    """Figure 14: 50 seeds, mean 2.5, variance 0.55; on every second seed A-1 has mean 0.1 x seed."""
    rows = [
        (name, seed, rng.normal(0.1 * seed if name == "A-1" and seed % 2 else 2.5, np.sqrt(0.55)))
        for name in ALGORITHMS
        for seed in range(50)
        for _ in range(repeats)
    ]
    return pd.DataFrame(rows, columns=["algorithm", "seed", "loss"])


def crossed(rng, *, lucky=(), n_seeds=15, n_benchmarks=8, paired=0.0, scales=False):
    """Seeds on several benchmarks; `lucky` algorithms have the same luck with a seed everywhere."""
    common = rng.normal(size=(n_benchmarks, n_seeds)) * paired
    luck = {name: rng.normal(size=n_seeds) for name in lucky}
    rows = []
    for b in range(n_benchmarks):
        unit = 10.0 ** (b % 4) if scales else 1.0
        for name in ALGORITHMS:
            noise = rng.normal(size=n_seeds) + common[b] + luck.get(name, 0.0)
            rows += [(f"b{b}", name, s, unit * (b + noise[s])) for s in range(n_seeds)]
    return pd.DataFrame(rows, columns=["benchmark", "algorithm", "seed", "loss"])


def test_appendix_c_names_the_algorithm_that_uses_the_seed():
    result = seed_effect(as_runs(appendix_c(np.random.default_rng(1))))
    assert result.affected == ("A-1",)
    assert result.significant
    assert result.overall.null == "loss ~ algorithm"
    assert result.overall.alternative == "loss ~ algorithm + (0 + algorithm | seed)"
    assert result.overall.df == 6
    assert result.overall.p_value < 1e-10
    assert " ".join(result.sentences()) == (
        "For A-1, scores depend on the seed across repetitions (F-test of the seed's variance per algorithm, Holm, "
        "alpha = 0.05). Look for what the seed fixes there; repetitions of a seed do not count as new runs."
    )


def test_p_value_per_algorithm_is_that_of_the_exact_likelihood_ratio():
    table = appendix_c(np.random.default_rng(2), repeats=2)
    table["loss"] += 0.01 * table["seed"]  # a small effect for all: where F < 1 the likelihood ratio has p = 1
    row = seed_effect(as_runs(table)).table.set_index("algorithm").loc["A-0"]
    part = table[table["algorithm"] == "A-0"]
    want = lt.glrt(lt.fit_lmm("loss ~ 1", part), lt.fit_lmm("loss ~ 1 + (1 | seed)", part), "exact")
    assert row["p_raw"] == pytest.approx(want.p_value, rel=1e-6)


def test_several_benchmarks_find_the_lucky_algorithm_whatever_their_units():
    result = seed_effect(as_runs(crossed(np.random.default_rng(3), lucky=("A-2",), scales=True)))
    assert (result.affected, result.crossed, result.standardized) == (("A-2",), True, True)
    raw = seed_effect(as_runs(crossed(np.random.default_rng(3), lucky=("A-2",), scales=True)), standardize=False)
    assert raw.affected == ()  # one benchmark with a large unit drowns the others


def test_pairing_is_reported_and_is_no_seed_effect():
    result = seed_effect(as_runs(crossed(np.random.default_rng(5), paired=2.0)))
    assert result.affected == ()
    assert result.pairing.share > 0.6
    assert result.pairing.p_value < 0.001
    assert "(1 | benchmark:seed)" in result.overall.null
    assert any(note.startswith("Pairing (no defect, not part of the decision)") for note in result.notes)


def test_a_run_copied_to_all_levels_of_a_metafeature_is_one_run():
    """An algorithm that ignores the prior has the same run for every prior; that is not a seed effect."""
    table = crossed(np.random.default_rng(6))
    both = pd.concat([table.assign(prior="good"), table.assign(prior="bad")])
    result = seed_effect(as_runs(both, metafeatures=("prior",)))
    alone = seed_effect(as_runs(table))
    assert result.affected == ()
    np.testing.assert_allclose(result.table["p_raw"], alone.table["p_raw"], rtol=1e-8)


def test_a_metafeature_that_is_constant_within_benchmarks_changes_nothing():
    table = crossed(np.random.default_rng(6))
    family = table.assign(family=np.where(table["benchmark"] < "b4", "x", "y"))
    result = seed_effect(as_runs(family, metafeatures=("family",)))
    np.testing.assert_allclose(result.table["p_raw"], seed_effect(as_runs(table)).table["p_raw"], rtol=1e-9)
    assert not any("family" in note for note in result.notes)


def test_budgets_of_a_run_count_once():
    table = crossed(np.random.default_rng(7))
    curves = pd.concat([table.assign(budget=b, loss=table["loss"] + 1.0 / b) for b in (1, 2, 4)])
    result = seed_effect(as_runs(curves))
    np.testing.assert_allclose(result.table["p_raw"], seed_effect(as_runs(table)).table["p_raw"], rtol=1e-6)
    assert result.notes[0] == "Each run counts once, with its mean over 3 values of budget."


def test_budgets_that_some_runs_lack_are_left_out():
    table = crossed(np.random.default_rng(8))
    curves = pd.concat([table.assign(budget=1), table[table["algorithm"] != "A-0"].assign(budget=9, loss=0.0)])
    scores, notes = as_runs(curves).study.one_score_per_run()
    assert len(scores) == len(table)
    assert notes == (
        "Each run counts once, with its score at one budget. Others, which some runs of the instance do not have, "
        "were left out.",
        "120 of 360 runs end early, the first at budget 1 of 9, and what the other runs of the same instance did after "
        "that does not count. If they failed there, leave them out or say what a failed run counts.",
    )


@pytest.mark.parametrize(
    ("sizes", "change", "error", "message"),
    [
        ({"n_benchmarks": 2}, lambda t: t.assign(budget=np.where(t["algorithm"] == "A-0", 1, 2)), DataError,
         "the runs of b0, b1 have no budget in common, so one score per run would compare different budgets. Filter "
         "the runs to budgets that all of them reached: runs.filter(budget=[...])."),
        ({"n_benchmarks": 1}, lambda t: pd.concat([t.assign(budget=b) for b in (1, 2, 4)]), DesignError,
         "there is one benchmark and one run per algorithm and seed (the scores at several budgets are one run), so "
         "what the seed does cannot be distinguished from chance. Add several benchmarks that were run with the same "
         "seeds, or repeat seeds."),
        ({"n_benchmarks": 2, "n_seeds": 5}, lambda t: t.assign(seed=t["benchmark"] + "-" + t["seed"].astype(str)),
         DesignError, "the effect of the seed cannot be distinguished from chance: no algorithm can be tested: none of "
         "its seeds comes back. Add benchmarks that were run with the same seeds, or repeat seeds."),
        ({"n_seeds": 1}, lambda t: t, DesignError, "there is one seed only (0), so its effect cannot be distinguished "
         "from that of the algorithm. Add runs with other seeds."),
    ],
    ids=["no common budget", "one run per seed on one benchmark", "seeds of their own", "one seed"],
)  # fmt: skip
def test_what_cannot_be_tested_is_refused(sizes, change, error, message):
    assert refusal(lambda: seed_effect(as_runs(change(crossed(np.random.default_rng(9), **sizes)))), error) == message


def test_two_seeds_need_the_raw_scores_and_without_seeds_there_is_nothing_to_test():
    table = crossed(np.random.default_rng(12), n_seeds=2)
    with pytest.raises(DesignError, match="two seeds that are scaled to one variance hold nothing but signs"):
        seed_effect(as_runs(table))
    assert len(seed_effect(as_runs(table), standardize=False).table) == 3
    with pytest.raises(ArgumentError, match=r"runs has no seed column, so nothing can depend on it\. Name it: Runs\("):
        seed_effect(as_runs(table, seed=None))
    with pytest.raises(ArgumentError, match=r"^standardize must be True, False or None, got 'yes'\.$"):
        seed_effect(as_runs(table), standardize="yes")


def test_an_algorithm_without_variation_is_named_and_left_out():
    table = crossed(np.random.default_rng(13), lucky=("A-2",))
    table.loc[table["algorithm"] == "A-1", "loss"] = 0.5
    result = seed_effect(as_runs(table))
    assert result.affected == ("A-2",)
    assert np.isnan(result.table.set_index("algorithm").loc["A-1", "p_raw"])
    assert "A-1 cannot be tested: its scores do not vary over the seeds." in result.notes


def test_two_algorithms_and_many_algorithms_work():
    table = crossed(np.random.default_rng(14))
    two = seed_effect(as_runs(table[table["algorithm"] != "A-2"]))
    assert two.overall.df == 3
    many = pd.concat([table, table.assign(algorithm="B" + table["algorithm"], loss=-table["loss"])])
    result = seed_effect(as_runs(many))
    assert result.overall.alternative.endswith("(1 | seed:algorithm)")
    assert result.overall.df == 1


def test_numeric_and_awkward_column_names_work():
    table = crossed(np.random.default_rng(16), lucky=("A-2",)).rename(
        columns={"benchmark": "algorithm ", "algorithm": "the tool", "loss": "1 - acc"}
    )
    table["the tool"] = table["the tool"].str[-1].astype(int)
    runs = as_runs(table, score="1 - acc", algorithm="the tool", benchmark="algorithm ")
    assert seed_effect(runs).affected == (2,)


def test_priorband_random_search_repeats_its_luck_on_related_benchmarks(data_dir):
    """With one seed it tries the same configurations on benchmarks of one search space."""
    table = pd.read_parquet(data_dir / "priorband.parquet")
    roles = {"score": "value", "budget": "used_fidelity", "metafeatures": ("prior",)}
    everything = seed_effect(as_runs(table, **roles))
    assert everything.affected == ("RS",)
    related = seed_effect(as_runs(table[table["benchmark"].str.startswith("PD1")], **roles))
    assert related.table.set_index("algorithm").loc["RS", "seed_share"] == pytest.approx(0.744, abs=0.001)
    unrelated = table[table["benchmark"].isin(["LC-167190", "JAHS-C10", "PD1-WMT"])]
    assert seed_effect(as_runs(unrelated, **roles)).affected == ()


def test_bundled_random_search_repeats_its_luck_within_a_search_space_only():
    """The bundled runs of one model and seed use the same draw order on all data sets; those of two models do not."""
    runs = lt.datasets.load_hpo_runs()
    for model in ("svm", "mlp"):
        shares = seed_effect(runs.filter(model=model)).table.set_index("algorithm")["seed_share"]
        assert shares["RS"] > 0.75
    assert "RS" not in seed_effect(runs.filter(dataset="vote")).affected
