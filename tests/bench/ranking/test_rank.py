"""`rank` as a whole: invariance, missing cells, a control, several methods side by side, words."""

import functools
import inspect

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from refusals import refuses
from scipy import stats
from study import table_of_scores

import lmemtest as lt
from lmemtest.bench.data.blocks import blocks_of
from lmemtest.bench.ranking.classical import ranked, shift_intervals
from lmemtest.bench.ranking.compare import facts_of_pair
from lmemtest.bench.ranking.methods import outcomes
from lmemtest.bench.ranking.rank import rank
from lmemtest.errors import ArgumentError, DataError, DesignError

RNG = np.random.default_rng(7)
NAMES = ["ant", "Bär", "cat", "dog"]
SCORES = RNG.normal(size=(14, 4)) * [1.0, 1.0, 1.0, 1.5] + RNG.normal(size=(14, 1)) + [0.0, 0.3, 1.4, 1.6]
WIDE = pd.DataFrame(SCORES, columns=NAMES)
WAYS = [("lmem", "auto"), ("frequentist", "auto"), ("bayesian", "auto"), ("bayesian", "hierarchical")]
WAYS += [("frequentist", test) for test in ("t", "tukey", "nemenyi", "conover", "wilcoxon")]


def found_by(table, method, test, direction="maximize", **options):
    options = {"n_draws": 2000, **options} if method == "bayesian" else options
    return rank(table, method, test=test, direction=direction, **options)


@functools.cache
def of_all(method, test):
    return found_by(WIDE, method, test)


def in_order(pairs):
    """The numbers of pairs, whoever stands left."""
    names = [*(name for name in ("p_raw", "p_value") if name in pairs), "p_better", "wins", "decision"]
    return pairs.set_index(["left", "right"])[names].sort_index()


@pytest.mark.daily(3)
@pytest.mark.parametrize(("method", "test"), WAYS)
def test_order_of_columns_and_sign_with_direction_change_nothing(method, test):
    whole = of_all(method, test)
    turned = found_by(-WIDE[["dog", "Bär", "ant", "cat"]], method, test, "minimize")
    assert turned.levels == whole.levels
    tolerance = 1e-6 if method == "lmem" else 1e-12
    pd.testing.assert_frame_equal(in_order(turned.pairs), in_order(whole.pairs), rtol=tolerance, atol=1e-12)


@pytest.mark.parametrize(("method", "test"), WAYS)
def test_decisions_letters_and_words_come_from_one_matrix(method, test):
    found = of_all(method, test)
    better = found.pairs["decision"].str.endswith(" better").to_numpy()
    matrix = found.decisions.significant
    assert [matrix.loc[pair] for pair in zip(found.pairs["left"], found.pairs["right"], strict=True)] == better.tolist()
    letters = dict(zip(found.table["algorithm"], found.table["letters"], strict=True))
    shared = [
        bool(set(letters[a]) & set(letters[b])) for a, b in zip(found.pairs["left"], found.pairs["right"], strict=True)
    ]
    assert (np.array(shared) == ~better).all()
    assert "equal" not in found.paragraph().replace("practically equivalent", "").replace("that they are equal", "")


@pytest.mark.daily(3)
@pytest.mark.parametrize(("method", "test"), WAYS)
def test_two_algorithms_are_enough(method, test):
    table = WIDE[["ant", "dog"]].copy()
    if test == "conover":  # which needs a block that says otherwise
        table.loc[0] = [2.0, 0.0]
    found = found_by(table, method, test)
    assert found.levels == ("dog", "ant")
    assert found.pairs["decision"].tolist() == ["dog better"]
    assert found.sentences()[0] == "dog ranks first, ahead of the other one."


@pytest.mark.daily(3)
@pytest.mark.parametrize(("method", "test"), WAYS)
def test_a_control_leaves_the_other_pairs_open(method, test):
    found = found_by(WIDE, method, test, control="cat")
    assert {frozenset(pair) for pair in zip(found.pairs["left"], found.pairs["right"], strict=True)} == {
        frozenset({"cat", name}) for name in NAMES if name != "cat"
    }
    assert found.decisions.undecided.loc["ant", "dog"]
    assert "letters" not in found.table


def test_advantages_of_the_hierarchical_model_are_those_of_the_algorithm_on_the_left():
    table = pd.DataFrame(np.random.default_rng(4).normal([0.0, 1.0], size=(12, 2)), columns=["A", "B"])
    found = rank(table, "bayesian", test="hierarchical", direction="maximize", rope=0.1).pairs.iloc[0]
    assert (found["left"], found["right"]) == ("B", "A")
    assert found["advantage"] == pytest.approx((table["B"] - table["A"]).mean())
    assert found["advantage_low"] < found["advantage"] < found["advantage_high"]
    assert min(found["p_left"], found["p_mean_left"], found["p_new_left"]) > 0.5


def test_every_benchmark_counts_once_however_many_seeds():
    rows = []
    for task in range(8):
        for tool, shift in (("A", 0.0), ("B", 0.5), ("C", 0.6)):
            for seed in range(3 + 4 * (task == 0)):
                rows.append((tool, task, seed, shift + RNG.normal()))
    table = pd.DataFrame(rows, columns=["tool", "task", "seed", "score"])
    runs = lt.Runs(table, score="score", direction="maximize", algorithm="tool", benchmark="task", seed="seed")
    means = table.groupby(["task", "tool"])["score"].mean().unstack()
    ours = rank(runs, "frequentist", test="wilcoxon")
    plain = rank(means, "frequentist", test="wilcoxon", direction="maximize")
    pd.testing.assert_frame_equal(ours.pairs, plain.pairs, rtol=1e-10)


def test_missing_cells_are_compared_where_both_ran():
    table = WIDE.assign(task=range(14)).melt("task").drop(index=[0, 1, 20])
    runs = lt.Runs(table, score="value", direction="maximize", algorithm="variable", benchmark="task")
    found = rank(runs, "frequentist")
    assert found.test == "wilcoxon"
    assert found.omnibus.name == "Skillings-Mack"
    row = found.pairs.set_index(["left", "right"]).loc[("dog", "ant")]
    assert row["wins"] + row["ties"] + row["losses"] == 12
    assert rank(runs, "frequentist", test="nemenyi").blocks.names == tuple(map(str, found.blocks.names))


@pytest.mark.parametrize(("method", "test"), [("frequentist", "wilcoxon"), ("bayesian", "auto")])
def test_stability_is_the_ranking_again_without_one(method, test):
    found = found_by(WIDE, method, test, rng=1)
    stable = found.stability(progress=False)
    assert (stable.n_blocks, stable.n_algorithms) == (14, 4)
    again = found_by(WIDE.drop(columns="cat"), method, test, rng=1)
    pairs = stable.changes.query("left_out == 'algorithm' and name == 'cat'")
    changed = {frozenset(pair) for pair in zip(pairs["left"], pairs["right"], strict=True)}
    for row in again.pairs.to_dict("records"):
        before = found.decisions.significant.loc[row["left"], row["right"]]
        now = again.decisions.significant.loc[row["left"], row["right"]]
        assert (before != now) == (frozenset((row["left"], row["right"])) in changed)


@pytest.mark.level(2)
def test_stability_of_the_model_refits_the_runs():
    runs = lt.datasets.load_hpo_runs().filter(budget=16, prior="good", algorithm=["HB", "RS", "TPE"])
    found = lt.rank(runs)
    stable = found.stability(progress=False)
    without = lt.rank(runs.filter(benchmark=[b for b in runs.levels("benchmark") if b != "mlp-digits"]))
    row = stable.changes.query("name == 'mlp-digits'")
    differ = sum(
        found.decisions.significant.loc[a, b] != without.decisions.significant.loc[a, b]
        for a, b in [("HB", "RS"), ("HB", "TPE"), ("RS", "TPE")]
    )
    assert len(row) == differ
    against = found_by(WIDE, "lmem", "auto", control="cat").stability(progress=False)
    assert any("the control cat is what is left out" in note for note in against.notes)


def test_facts_of_a_pair_do_not_take_rounding_for_a_lead():
    wide = pd.DataFrame({"A": [0.1 + 0.2, 2.0, 3.0], "B": [0.3, 1.0, 4.0]})
    text = facts_of_pair(blocks_of(lt.Runs.from_wide(wide, direction="maximize")), "A", "B")
    assert text.startswith("A is ahead on 1 of 3 benchmarks, B on 1; benchmark 1 alone accounts for 50 %")


def test_the_leaderboard_is_of_the_same_blocks():
    board = lt.rank(WIDE, "frequentist", direction="maximize").leaderboard(n_draws=50, rng=1, reference="ant")
    table = board.to_frame().set_index("algorithm")
    assert table.loc["ant", "elo"] == pytest.approx(1000.0)
    assert table["mean_rank"].to_dict() == pytest.approx((-WIDE).rank(axis=1).mean().to_dict())


def test_side_by_side_the_trap_is_shown_and_measured():
    rows = [
        (tool, task, seed, 0.8 * RNG.normal() + advantage)
        for task in range(8)
        for tool, advantage in zip("ABC", RNG.normal(size=3), strict=True)
        for seed in range(20)
    ]
    table = pd.DataFrame(rows, columns=["tool", "task", "seed", "score"])
    runs = lt.Runs(table, score="score", direction="maximize", algorithm="tool", benchmark="task", seed="seed")
    found = rank(runs, "all", n_draws=1000)
    assert list(found.rankings) == ["lmem", "tukey", "nemenyi", "wilcoxon", "signed_rank"]
    trap = found.rows_as_blocks
    assert (trap["n_rows"], trap["n_blocks"]) == (160, 8)
    assert trap["false_alarms"][0] > 0.4
    assert trap["of_blocks"][0] < 0.06
    assert "nominal 5 %" in found.sentences()[-1]
    assert rank(WIDE, "all", direction="maximize", n_draws=1000).rows_as_blocks is None


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"direction": None}, ArgumentError, "or a dataframe and the roles of its columns; got DataFrame alone"),
        ({"method": "frequentist", "test": "signed_rank"}, ArgumentError, "are auto, moderated, t, tukey"),
        ({"control": "cow"}, ArgumentError, "control must be one of the algorithms"),
        ({"method": "frequentist", "test": "t", "adjust": "tukey"}, ArgumentError, "one variance of all pairs"),
        ({"method": "bayesian", "adjust": "holm"}, ArgumentError, "posterior probabilities"),
        ({"method": "bayesian", "rope": -1.0}, ArgumentError, "rope must be a finite number of at least 0"),
        ({"effect_size": "eta"}, ArgumentError, "effect_size must be"),
    ],
)  # fmt: skip
def test_options_that_do_not_go(options, error, words):
    refuses(error, words, rank, WIDE, **{"direction": "maximize", **options})


def test_tables_that_cannot_be_ranked():
    with pytest.raises(DataError):
        rank(WIDE.mask(WIDE > 2.5), "frequentist", direction="maximize")
    with pytest.raises(DesignError, match="several benchmarks or several seeds"):
        rank(WIDE.iloc[:1], "frequentist", direction="maximize")
    with pytest.raises(DesignError, match="the ranks are the same on every benchmark"):
        rank({"A": [1.0, 2, 3], "B": [2.0, 3, 5]}, "frequentist", test="conover", direction="maximize")
    runs = lt.datasets.load_hpo_runs().filter(budget=16)
    refuses(ArgumentError, "contradicts the runs", rank, runs, direction="maximize")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_signed_ranks_decide_who_is_better_and_neither_the_order_nor_a_shift_of_zero(sign):
    direction = "maximize" if sign > 0 else "minimize"
    few = np.where(np.arange(300) < 20, 2.0, 1.0)  # better or as good everywhere: the median of differences is zero
    found = rank({"A": sign * few, "B": sign * np.ones(300)}, "frequentist", test="wilcoxon", direction=direction)
    assert found.pairs["decision"].tolist() == ["A better"]
    assert found.pairs["estimate"].iat[0] == 0.0
    often = np.where(np.arange(30) < 16, 0.01, -5.0) - 1e-4 * np.arange(30)  # ahead more often, and by less
    found = rank({"A": sign * often, "B": np.zeros(30)}, "frequentist", test="wilcoxon", direction=direction)
    assert found.levels == ("A", "B")
    assert found.pairs["decision"].tolist() == ["B better"]
    said = found.paragraph()
    assert "B was better than A" in said
    assert "rank-biserial r = 0." in said
    assert set(found.stability(progress=False).to_frame()["decision"]) == {"B better"}


def test_an_offset_changes_no_ties_of_differences():
    d = np.array([1.0, -1.0, 1.0, 2.0, 2.0, -2.0, 3.0, 3.0, 3.0, -3.0, 1.0, 4.0])
    base = np.arange(12) % 5 / 7.0
    plain, far = (
        rank({"A": at + unit * (base + d), "B": at + unit * base}, "frequentist", test="wilcoxon", direction="maximize")
        for at, unit in ((0.0, 1.0), (1e6, 1e-3))
    )
    assert far.pairs["p_raw"].iat[0] == pytest.approx(plain.pairs["p_raw"].iat[0], rel=1e-12)


@pytest.mark.parametrize("of", [pd.DataFrame, lambda table: table.to_dict("list")])
def test_labels_of_columns_may_be_numbers(of):
    table = of(WIDE.set_axis([3, 1, 10, 2], axis=1))
    assert rank(table, "frequentist", direction="maximize", control=10).control == "10"
    assert rank(table, direction="maximize").levels[0] == "2"


def test_levels_of_algorithms_may_be_numbers():
    long = WIDE.set_axis([3, 1, 10, 2], axis=1).assign(task=range(14)).melt("task", var_name="tool")
    runs = lt.Runs(long.astype({"tool": int}), score="value", direction="maximize", algorithm="tool", benchmark="task")
    assert rank(runs).levels[0] == "2"
    with pytest.raises(DataError, match="more than one column named '1'"):
        rank(WIDE.set_axis([1, "1", 2, 3], axis=1), direction="maximize")


def test_copies_share_the_first_place_whatever_their_order():
    table = WIDE.assign(copy=WIDE["dog"])
    for names in (["ant", "dog", "copy"], ["copy", "dog", "ant"]):
        for method in ("lmem", "frequentist"):
            said = rank(table[names], method, direction="maximize").sentences()[0]
            assert set(said.split()[:3]) == {"dog", "and", "copy"}
            assert "share the first place" in said


def lacking(cells, direction="maximize", table=WIDE):
    long = table.assign(task=range(len(table))).melt("task", var_name="tool")
    gone = [(task, tool) in cells for task, tool in zip(long["task"], long["tool"], strict=True)]
    return lt.Runs(long[~np.array(gone)], score="value", direction=direction, algorithm="tool", benchmark="task")


def test_pairs_that_never_met_are_named_and_order_nothing():
    runs = lacking({(t, "dog" if t < 7 else "Bär") for t in range(14)})
    for method in ("frequentist", "bayesian"):
        found = rank(runs, method, rng=1)
        assert found.levels[0] == "dog"  # not the first by name
        assert np.isfinite(found.table["mean_rank"]).all()
        last = found.sentences()[-1]
        assert last.startswith("Without a test, for too few common benchmarks: ")
        assert {"Bär", "dog"} <= set(last.rstrip(".").split())
    two = lacking({(t, "dog" if t < 7 else "Bär") for t in range(14)}, table=WIDE[["dog", "Bär"]])
    for method in ("frequentist", "bayesian"):
        refuses(DesignError, "no two algorithms have scores on 2 common benchmarks", rank, two, method)


def test_blocks_left_out_are_said_in_the_paragraph():
    runs = lacking({(0, "ant")})
    left_out = "1 benchmark that lacks a score of some algorithm was left out"
    assert left_out in rank(runs, "frequentist", test="nemenyi").paragraph()
    ties = rank(lacking({(0, "ant")}, table=WIDE * 0.0 + 1.0), "frequentist")
    assert (ties.omnibus.statistic, ties.omnibus.p_value) == (0.0, 1.0)
    assert rank(runs, "frequentist").notes[0].startswith("1 of 14 benchmarks lacks an algorithm")
    two = rank(lacking({(0, "ant")}, table=WIDE[["ant", "dog"]]), "frequentist")
    assert "Skillings" not in " ".join(two.notes)


def test_notes_of_the_model_are_those_of_its_comparisons():
    said = " ".join(rank(WIDE, adjust="tukey", vcov="model", direction="maximize").notes)
    assert "are moderated" not in said
    assert "are moderated" in " ".join(of_all("lmem", "auto").notes)
    assert "moderated by their scatter" in of_all("lmem", "auto").paragraph()


def test_what_no_signed_rank_test_can_reach():
    x = np.arange(6.0)[:, None] ** 2 + np.arange(5.0) * (1 + np.arange(6.0)[:, None])
    table = pd.DataFrame(x, columns=list("ABCDE"))
    found = {
        name: rank(table, "frequentist", test="wilcoxon", adjust=name, direction="maximize")
        for name in ("fdr", "holm", "sidak")
    }
    assert len(found["fdr"].decided) == 10
    assert len(found["fdr"].notes) == 1
    assert "its smallest p-value is 0.3125" in found["holm"].notes[1]
    assert f"its smallest p-value is {1 - (1 - 2 / 64) ** 10:.4f}" in found["sidak"].notes[1]
    few = rank(table[:2], "frequentist", test="wilcoxon", direction="maximize")
    assert "its smallest p-value is 1.000" in few.notes[1]


def test_single_intervals_of_the_shift_go_with_single_tests():
    d = (WIDE["dog"] - WIDE["ant"]).to_numpy()
    row = rank(WIDE, "frequentist", test="wilcoxon", adjust="none", direction="maximize").pairs
    row = row.set_index(["left", "right"]).loc[("dog", "ant")]
    low, high = shift_intervals(d[None], np.array([0.95]))[0, 1:]
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high))
    for names in (["ant", "dog"], ["dog", "ant"]):
        row = rank(WIDE[names], "frequentist", test="wilcoxon", direction="maximize").pairs.iloc[0]
        assert row["left"] == "dog"
        assert row["statistic"] == pytest.approx((np.sign(d) * stats.rankdata(np.abs(d))).sum())


def test_side_by_side_a_test_that_cannot_be_made_is_noted():
    shifted = pd.DataFrame({"A": [1.0, 2, 4, 3, 6], "B": [2.0, 3, 5, 4, 7], "C": [3.0, 4, 6, 5, 8]})
    found = rank(shifted, "all", direction="maximize", n_draws=200)
    assert "nemenyi" in found.rankings
    assert "tukey" not in found.rankings
    assert any(note.startswith("Without Tukey's HSD") for note in found.notes)


def test_a_pair_without_a_test_has_its_reason():
    table = WIDE.assign(copy=WIDE["dog"] + 1.0)[["ant", "dog", "copy"]]
    said = rank(table, "frequentist", test="t", direction="maximize").sentences()[-1]
    assert said == "Without a test, since their differences have no variance: copy and dog."


def test_few_blocks_decide_for_a_posterior_and_the_note_says_how_often():
    found = rank({"A": [1.0, 2, 3], "B": [0.5, 1, 1]}, "bayesian", direction="maximize", rng=1, n_draws=500)
    assert found.pairs["decision"].tolist() == ["A better"]
    assert "in 25 % of studies" in found.notes[-1]
    assert "P > 0.999" in found.paragraph()


def test_a_model_compares_algorithms_without_a_common_whole_block():
    rows = [(tool, task, kind) for tool in "ABC" for task in range(8) for kind in "xy" if (tool, kind) != ("C", "y")]
    table = pd.DataFrame(rows, columns=["tool", "task", "kind"])
    noise = np.random.default_rng(2).normal(size=len(table))
    table["score"] = 3.0 * table["tool"].map({"A": 0.0, "B": 1.0, "C": 2.0}) + noise
    runs = lt.Runs(table, score="score", direction="maximize", algorithm="tool", benchmark="task", metafeatures="kind")
    assert "0 of 0" not in rank(runs).paragraph()
    found = rank(runs, "all", rng=1, n_draws=500)
    assert found.rows_as_blocks is None
    assert "lmem" in found.rankings
    assert found.rankings["signed_rank"].levels == ("B", "A", "C")


def test_means_are_compared_by_moderated_errors_unless_tukey_is_asked_for():
    """Of one score per benchmark that is the comparison of the mixed model; one erratic algorithm does not matter."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(12, 1)) * 3.0 + rng.normal(size=(12, 5)) * [4.0, 1.0, 1.0, 1.0, 1.0]
    wide = pd.DataFrame(x + np.array([0.0, 0.0, 0.4, 0.8, 1.2]), columns=list("ABCDE"))
    found, model = lt.rank(wide, "frequentist", direction="maximize"), lt.rank(wide, direction="maximize")
    assert (found.test, found.omnibus) == ("moderated", None)
    columns = ["left", "right", "estimate", "se", "df", "statistic", "p_value", "ci_low", "ci_high"]
    pd.testing.assert_frame_equal(found.pairs[columns], model.pairs[columns])
    assert set(found.assumptions["test"]) == {"Shapiro-Wilk"}
    assert any(note.startswith("A varies about") for note in found.notes)
    tukey = lt.rank(wide, "frequentist", test="tukey", direction="maximize")
    assert tukey.pairs["se"].nunique() == 1
    assert (found.pairs["se"] < tukey.pairs["se"]).sum() == 6  # of the pairs without A
    with pytest.raises(DesignError, match="moderated standard errors need 3 benchmarks"):
        lt.rank(wide.iloc[:2], "frequentist", test="moderated", direction="maximize")


def test_skewed_advantages_and_what_better_means_of_ranks_are_said():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(30, 4)) * 0.5
    x[:, 0] += 1.0 - rng.exponential(size=30) ** 1.5
    wide = pd.DataFrame(x, columns=list("ABCD"))
    ranks = lt.rank(wide, "frequentist", direction="maximize")
    assert ranks.test == "nemenyi"
    assert "Better is meant of mean ranks" in " ".join(ranks.notes)
    assert all("is ranked significantly better than" in text for text in ranks.sentences() if " than " in text)
    for test in ("nemenyi", "moderated", "tukey", "t"):
        notes = " ".join(lt.rank(wide, "frequentist", test=test, direction="maximize").notes)
        assert "The advantages of A over the benchmarks are more skewed than normal ones (skewness -" in notes
        assert ("ranks then differ although means do not" in notes) == (test == "nemenyi")


def test_outcomes_are_those_of_the_ranks_of_every_pair():
    """With missing cells, ties, and differences that are rounding."""
    scores = np.round(np.random.default_rng(3).normal(size=(9, 5)), 1)
    scores[0, :2], scores[1, 1:3], scores[2, 4] = 0.0, (0.3, 0.1 + 0.2), np.nan
    long = pd.DataFrame(scores, columns=list("ABCDE")).melt(ignore_index=False, var_name="algorithm").dropna()
    roles = {"algorithm": "algorithm", "benchmark": "index"}
    blocks = blocks_of(lt.Runs(long.reset_index(), score="value", direction="maximize", **roles))
    wins, ties = outcomes(blocks)
    for i, j in zip(*np.triu_indices(5, 1), strict=True):
        pair = blocks.gains[:, [i, j]]
        first = ranked(pair[np.isfinite(pair).all(axis=1)])[:, 0]
        assert (wins[i, j], wins[j, i]) == ((first == 2).sum(), (first == 1).sum())
        assert ties[i, j] == ties[j, i] == (first == 1.5).sum()


# ---------------------------------------------------------------------- sets of ranks


# ----------------------------------------------------------------------------------------------- what is taken as runs


DOORS = {
    "rank": lambda *given, **roles: lt.rank(*given, **roles),
    "leaderboard": lambda *given, **roles: lt.leaderboard(*given, rng=1, **roles),
    "aggregate_scores": lambda *given, **roles: lt.aggregate_scores(*given, resample="benchmarks", rng=1, **roles),
    "analyze": lambda *given, **roles: lt.analyze(*given, **roles),
}


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({"method": "wilcoxon"}, "df, 'wilcoxon', score="),
        ({"test": "friedman"}, "df, 'nemenyi', score="),
        ({}, "df, score="),
    ],
)
def test_the_call_that_is_proposed_for_a_dataframe_asks_for_the_same_test(asked: dict[str, str], kept: str) -> None:
    with pytest.raises(ArgumentError, match=r"lmemtest\.rank\(" + kept):
        lt.rank(
            {"tool": list("ABC") * 4, "task": list("uuuvvvwwwxxx"), "loss": [1, 2, 4, 2, 3, 5, 1, 3, 4, 1, 2, 5]},
            **asked,
        )


def test_names_of_tests_are_known_in_capitals_and_by_test_alone() -> None:
    wide = {"A": [0.9, 0.8, 0.7, 0.9, 0.6], "B": [0.8, 0.7, 0.7, 0.8, 0.5]}
    assert (
        lt.rank(wide, "Wilcoxon", direction="maximize")
        .to_frame()
        .equals(lt.rank(wide, "wilcoxon", direction="maximize").to_frame())
    )
    with pytest.raises(ArgumentError, match=r"test must be 'auto' or .*Did you mean 'nemenyi'"):
        lt.rank(wide, test="nemeny", direction="maximize")


@pytest.mark.parametrize("door", DOORS)
def test_a_dataframe_with_roles_and_a_wide_one_are_the_runs_that_they_make(door: str) -> None:
    call, rows = DOORS[door], table_of_scores(np.asarray(SCORES), "benchmark algorithm", algorithm=NAMES)
    wide = WIDE.assign(data=[f"d{i}" for i in range(len(WIDE))])
    roles = {"score": "score", "direction": "maximize", "algorithm": "algorithm", "benchmark": "benchmark"}
    of_columns = {"direction": "maximize", "benchmark": "data"}
    for table, given, make in ((rows, roles, lt.Runs), (wide, of_columns, lt.Runs.from_wide)):
        assert_frame_equal(call(table, **given).to_frame(), call(make(table, **given)).to_frame())
    assert_frame_equal(call(wide, direction="maximize").to_frame(), call(wide, **of_columns).to_frame())
    with pytest.raises(ArgumentError, match=f"{door} of a dataframe needs algorithm=: which column is it"):
        call(rows, score="score", direction="maximize")
    with pytest.raises(ArgumentError, match="score is for a dataframe; Runs have their roles"):
        call(lt.Runs(rows, **roles), score="score")
    with pytest.raises(ArgumentError, match="ignore is for a table with a row for each score"):
        call(wide, direction="maximize", ignore=["data"])
    refuses(TypeError, r"has no argument 'scroe'. Did you mean 'score'", call, rows, scroe="score")
    assert {"score", "algorithm", "benchmark", "failed"} <= {*inspect.signature(getattr(lt, door)).parameters}


def test_a_wide_table_may_have_an_algorithm_called_y() -> None:
    wide = pd.DataFrame({"task": list("abcd"), "x": [1.0, 2.0, 3.0, 4.0], "y": [2.0, 3.0, 4.0, 4.5]})
    refuses(ArgumentError, r"lmemtest.rank\(df, direction='maximize'\)", lt.rank, wide)
    tidy = pd.DataFrame({"tool": list("ab"), "y": [2.0, 3.0], "z": [1.0, 2.0]})
    refuses(ArgumentError, "algorithm='tool'", lt.rank, tidy)


def boards(k: int, n: int, rng: int = 0) -> pd.DataFrame:
    draws = np.random.default_rng(rng)
    scores = np.linspace(1.0, 0.0, k) + draws.normal(size=(n, 1)) + 0.05 * draws.normal(size=(n, k))
    return pd.DataFrame(scores, columns=[f"a{i:02d}" for i in range(k)])


def test_sets_of_ranks_stand_in_the_table_and_letters_up_to_twelve_algorithms() -> None:
    few, many = (lt.rank(boards(k, 9), direction="maximize") for k in (12, 13))
    assert ("letters" in few.table, "letters" in many.table) == (True, False)
    for ranking in (few, many):
        codes = ranking.decisions.codes
        assert ranking.table["rank_low"].tolist() == (1 + (codes == -1).sum(axis=1)).tolist()
        assert ranking.table["rank_high"].tolist() == (len(codes) - (codes == 1).sum(axis=1)).tolist()


def test_the_top_is_certain_and_possible_by_the_sets_of_ranks() -> None:
    decisions = lt.rank(boards(13, 9), direction="maximize").decisions
    for k in (1, 3, 13):
        certain, possible = decisions.top(k)
        assert set(certain) == {a for a, high in zip(decisions.levels, decisions.rank_high, strict=True) if high <= k}
        assert set(possible) == {a for a, low in zip(decisions.levels, decisions.rank_low, strict=True) if low <= k}
    for k in (0, 14, 1.5):
        refuses(ArgumentError, "k must be", decisions.top, k)


def test_many_algorithms_are_told_by_who_may_be_best() -> None:
    ranking = lt.rank(boards(30, 9), direction="maximize")
    _, possible = ranking.decisions.top()
    lines = ranking.sentences()
    assert len(lines) == 3
    assert all(name in lines[1] for name in possible[:7])
    assert str(len(ranking.decided)) in lines[2]


@pytest.mark.parametrize(("adjust", "at_once"), [(None, True), ("holm", True), ("none", False), ("fdr", False)])
def test_confidence_is_claimed_where_decisions_are_simultaneous(adjust, at_once) -> None:
    decisions = lt.rank(boards(5, 9), direction="maximize", adjust=adjust).decisions
    assert decisions.simultaneous is at_once
    assert ("95 % confidence" in decisions.sentences()[0]) is at_once


def test_ranks_on_a_new_benchmark_follow_the_scores_that_are_predicted() -> None:
    """Of two algorithms the gains are opposite: the first is ahead where one sum of two Student's variables is."""
    table = boards(2, 9, rng=3) + np.array([0.0, 0.99])
    d = (table["a00"] - table["a01"]).to_numpy()
    size, draws = 400_000, np.random.default_rng(2)
    both = draws.standard_t(8, size) * np.sqrt(0.25)
    own = (draws.standard_t(8, (2, size)) * np.sqrt(0.75) * [[0.5], [-0.5]]).sum(axis=0)
    want = (d.mean() + d.std(ddof=1) * np.sqrt(1.0 + 1.0 / 9) * (both + own) > 0).mean()
    answer = lt.rank(table, direction="maximize").next_benchmark(n_draws=200_000, rng=1)
    found = answer.to_frame().set_index("algorithm")["p_first"]
    assert found["a00"] == pytest.approx(want, abs=4e-3)
    assert found.sum() == pytest.approx(1.0)


def test_a_new_benchmark_is_not_predicted_from_four() -> None:
    refuses(DesignError, "predicted from 5 benchmarks", lt.rank(boards(3, 4), direction="maximize").next_benchmark)
