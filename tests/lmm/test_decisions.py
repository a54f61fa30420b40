"""Groups, letters and critical differences from one decision matrix, of tests and of decisions from elsewhere."""

from __future__ import annotations

import dataclasses
import itertools
import re

import numpy as np
import pandas as pd
import pytest
from references import values
from refusals import refuses

import lmemtest as lt
from lmemtest.errors import ArgumentError, LmemtestError
from lmemtest.lmm.means.decisions import Decisions, decisions_of, maximal_cliques
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.means.estimates import Estimates


def made_up(means, se=1.0, direction="minimize", df=np.inf):
    """Marginal means of independent groups with known standard errors."""
    k = len(means)
    se = np.broadcast_to(np.asarray(se, dtype=float), (k,))
    levels = [chr(ord("A") + i) for i in range(k)]
    means = np.asarray(means, dtype=float)
    return Estimates.of(
        L=np.eye(k),
        frame=pd.DataFrame({"algorithm": levels}),
        b=np.nan_to_num(means),
        V=np.diag(se**2),
        df=df,
        estimable_function=lambda L: ~((L != 0) & np.isnan(means)).any(axis=1),
        ddf="asymptotic",
        score="loss",
        direction=direction,
    )


def test_who_is_better_is_known_without_means():
    """Of factors that are nested in each other no mean is estimable, and every difference is."""
    places = [("p", "u"), ("p", "v"), ("q", "w"), ("q", "x"), ("q", "y")]
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        [
            {"task": f"t{i}", "f": f, "g": g, "tool": tool, "y": level + rng.normal()}
            for i in range(6)
            for f, g in places
            for tool, level in (("A", 5.0), ("B", 0.0), ("C", 2.5))
        ]
    )
    pairs = lt.fit_lmm("y ~ tool + f + g + (1 | task)", table).emmeans("tool").pairs()
    assert np.isnan(pairs.estimates.estimate).all()
    low, high = (pairs.decisions(direction=name).among(["A", "B", "C"]) for name in ("minimize", "maximize"))
    assert low.tolist() == [[0, -1, -1], [1, 0, 1], [1, -1, 0]]
    assert high.tolist() == (-low).tolist()


def brute_force_cliques(adjacent):
    k = len(adjacent)
    cliques = [
        set(c)
        for n in range(1, k + 1)
        for c in itertools.combinations(range(k), n)
        if all(adjacent[i, j] for i, j in itertools.combinations(c, 2))
    ]
    return sorted(tuple(sorted(c)) for c in cliques if not any(c < other for other in cliques))


@pytest.mark.parametrize("seed", range(20))
def test_cliques_match_brute_force(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 8))
    upper = np.triu(rng.random((k, k)) < rng.uniform(0.2, 0.9), 1)
    adjacent = upper | upper.T
    assert list(maximal_cliques(adjacent)) == brute_force_cliques(adjacent)


def test_too_many_groups_are_refused_with_advice():
    parts = 21  # complement of 7 triangles: 3^7 = 2187 maximal cliques
    adjacent = np.ones((parts, parts), dtype=bool)
    for start in range(0, parts, 3):
        adjacent[start : start + 3, start : start + 3] = False
    refuses(ArgumentError, r"more than 2000 groups .* Compare fewer levels", maximal_cliques, adjacent)


@pytest.mark.parametrize(("direction", "order"), [("minimize", "CAB"), ("maximize", "BAC"), (None, "CAB")])
def test_levels_are_ordered_best_first(direction, order):
    sep = made_up([2.0, 9.0, 1.0], direction=direction).pairs().decisions()
    assert "".join(sep.levels) == order
    assert sep.means == tuple({"A": 2.0, "B": 9.0, "C": 1.0}[level] for level in sep.levels)
    assert any("not known whether low or high" in note for note in sep.notes) == (direction is None)


def test_direction_argument_overrides_and_says_so():
    sep = made_up([2.0, 9.0, 1.0]).pairs().decisions(direction="maximize")
    assert sep.levels[0] == "B"
    assert "Ordered to maximize as asked; the runs say minimize." in sep.notes


def test_overlapping_groups_share_letters():
    sep = made_up([0.0, 3.0, 6.0]).pairs().decisions()
    assert sep.groups == (("A", "B"), ("B", "C"))
    assert sep.letters == {"A": "a", "B": "ab", "C": "b"}
    assert sep.significant.loc["A", "C"]
    assert not sep.significant.loc["A", "B"]


def test_groups_need_not_be_contiguous_and_never_span_a_member_that_differs():
    # B lies between A and C and is measured far more precisely than they are
    sep = made_up([0.0, 2.0, 3.0], se=[0.1, 0.1, 2.0]).pairs().decisions()
    assert sep.significant.loc["A", "B"]
    assert sep.groups == (("A", "C"), ("B", "C"))
    for group in sep.groups:
        assert not sep.significant.loc[list(group), list(group)].any(axis=None)


@pytest.mark.parametrize("seed", range(10))
def test_levels_differ_exactly_when_they_share_no_letter(seed):
    rng = np.random.default_rng(seed)
    sep = made_up(rng.normal(size=9) * 4, se=rng.uniform(0.3, 2, 9)).pairs().decisions()
    for a, b in itertools.combinations(sep.levels, 2):
        share = bool(set(sep.letters[a]) & set(sep.letters[b]))
        assert share == (not sep.significant.loc[a, b])


def test_critical_difference_is_the_half_width_at_alpha():
    em = made_up([0.0, 1.0, 2.0], se=[1.0, 1.0, 2.0], df=20.0)
    sep = em.pairs().decisions(alpha=0.1)
    at_level = em.pairs(alpha=0.1).to_frame()
    half = (at_level["ci_high"] - at_level["ci_low"]) / 2
    assert sep.critical_difference == pytest.approx((half.min(), half.max()))


def test_pairs_differ_exactly_when_their_distance_exceeds_their_critical_difference(fitted):
    em = emmeans(fitted("bench_unbalanced", "y ~ algorithm + (1|benchmark)"), "algorithm")
    frame = em.pairs().to_frame()
    sep = em.pairs().decisions()
    for row in frame.to_dict("records"):
        assert sep.significant.loc[row["left"], row["right"]] == (row["ci_low"] > 0 or row["ci_high"] < 0)


def test_untested_pairs_are_undecided_and_flagged():
    sep = made_up([0.0, np.nan, 9.0]).pairs().decisions()
    assert sep.levels == ("A", "C", "B")
    assert sep.undecided.loc["A", "B"]
    assert not sep.undecided.loc["A", "C"]
    assert sep.groups == (("A", "B"), ("C", "B"))
    assert any("2 of 3 pairs have no test (for instance A and B)" in note for note in sep.notes)
    assert sep.decision.loc["A", "C"] is np.True_
    assert sep.decision.loc["A", "B"] is pd.NA


def test_a_pair_that_is_missing_from_the_tests_is_undecided():
    """Whatever a table leaves out is unknown, and is joined rather than called different."""
    tests = made_up([0.0, 1.0, 9.0]).pairs().table
    for row in range(3):
        kept = tests.drop(index=row)
        whole, found = (
            decisions_of(
                levels=["A", "B", "C"],
                means=[0.0, 1.0, 9.0],
                se=[1.0] * 3,
                tests=table,
                half_widths=[2.0],
                alpha=0.05,
                direction="minimize",
                adjust="tukey",
                ddf="asymptotic",
                score="loss",
            )
            for table in (tests, kept)
        )
        a, b = tests.loc[row, "left"], tests.loc[row, "right"]
        assert found.undecided.loc[a, b]
        assert found.undecided.loc[b, a]
        assert not found.significant.loc[a, b]
        assert set(found.letters[a]) & set(found.letters[b])
        assert any(f"1 of 3 pairs have no test (for instance {a} and {b})" in note for note in found.notes)
        rest = ~found.undecided.to_numpy()
        assert (found.significant.to_numpy()[rest] == whole.significant.to_numpy()[rest]).all()
        assert not (found.significant & found.undecided).any(axis=None)


def test_nothing_tested_has_no_critical_difference():
    em = dataclasses.replace(made_up([0.0, 1.0]), V=np.zeros((2, 2)))
    sep = em.pairs().decisions()
    assert np.isnan(sep.critical_difference).all()
    assert sep.groups == (("A", "B"),)


def test_ties_keep_the_level_order_and_the_result_ignores_row_order():
    sep = made_up([1.0, 1.0, 1.0]).pairs().decisions()
    assert sep.levels == ("A", "B", "C")
    assert sep.groups == (("A", "B", "C"),)


def test_groups_of_by_must_be_selected(fitted):
    em = emmeans(fitted("bench_prior", "y ~ algorithm * prior + (1|benchmark)"), "algorithm", by="prior")
    value = em.frame["prior"].iloc[0]
    with pytest.raises(
        ArgumentError, match=rf"in 2 groups by prior. Select one first: pairs.select\(prior='{value}'\)"
    ):
        em.pairs().decisions()
    assert em.pairs().select(prior=value).decisions().selected == {"prior": value}


@pytest.mark.daily(3)
@pytest.mark.parametrize("adjust", ["holm", "shaffer", "stepdown", "singlestep", "fdr", "tukey"])
def test_each_pair_differs_exactly_where_its_means_are_further_apart_than_its_critical_difference(adjust):
    for shift in np.linspace(0.5, 4.0, 8):
        pairs = made_up([0.0, shift, 2.2 * shift]).pairs(adjust=adjust, alpha=0.1)
        for alpha in (0.01, 0.05, 0.2):
            separated = pairs.decisions(alpha)
            beyond = pairs.table["estimate"].abs().to_numpy() > pairs.half_widths(alpha)
            ends = pairs.table[["left", "right"]].itertuples(index=False)
            assert [separated.significant.loc[pair] for pair in map(tuple, ends)] == beyond.tolist()
        inside = (pairs.table["ci_low"] < 0) & (pairs.table["ci_high"] > 0)
        assert (inside == (pairs.table["p_value"] >= 0.1)).all()


def test_to_frame_and_summary():
    sep = made_up([0.0, 3.0, 6.0]).pairs().decisions()
    assert list(sep.to_frame().columns) == ["algorithm", "mean", "se", "rank_low", "rank_high", "letters"]
    assert "not the same as equal" in sep.summary()


def test_sixty_levels_are_separated_quickly():
    sep = made_up(np.linspace(0, 30, 60)).pairs().decisions()
    assert len(sep.groups) < 60
    assert all(sep.letters.values())


# ---------------------------------------------------------------------- decisions from elsewhere


MEANS = {"A": 3.0, "B": 1.0, "C": 2.0, "D": np.nan}
P = pd.DataFrame(
    [[1.0, 0.01, 0.2, np.nan], [0.01, 1.0, 0.05, 0.03], [0.2, 0.05, 1.0, 0.9], [np.nan, 0.03, 0.9, 1.0]],
    index=list("ABCD"),
    columns=list("ABCD"),
)


def significant(sep):
    return {frozenset(pair) for pair in zip(*np.nonzero(sep.significant.to_numpy()), strict=True)}


def test_p_values_and_booleans_give_the_decisions_that_they_say():
    sep = Decisions.of(MEANS, P, direction="minimize", alpha=0.05, critical_difference=(0.5, 1.0))
    assert sep.levels == ("B", "C", "A", "D")
    assert sep.decision.loc["A", "B"]
    assert not sep.decision.loc["B", "C"]  # 0.05 is not below 0.05
    assert sep.decision.loc["A", "D"] is pd.NA
    assert sep.groups == (("B", "C"), ("C", "A", "D"))
    assert sep.critical_difference == (0.5, 1.0)
    flags = (P < 0.05).astype("boolean").mask(P.isna())
    same = Decisions.of(MEANS, flags, direction="minimize")
    pd.testing.assert_frame_equal(same.decision, sep.decision)
    assert np.isnan(same.alpha)
    assert "alpha" not in same.summary()


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_columns_and_means_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    rows, columns, means = (list(rng.permutation(list("ABCD"))) for _ in range(3))
    found = Decisions.of(
        pd.Series(MEANS).loc[means], P.loc[rows, columns].where(lambda p: ~np.isin(p, [1.0])), direction="maximize"
    )
    want = Decisions.of(MEANS, P, direction="maximize")
    assert (found.levels, found.groups, found.letters) == (want.levels, want.groups, want.letters)
    pd.testing.assert_frame_equal(found.decision, want.decision)


def test_one_triangle_is_enough_and_an_array_has_the_order_of_the_means():
    upper = P.where(np.triu(np.ones((4, 4), dtype=bool), 1))
    want = Decisions.of(MEANS, P).decision
    pd.testing.assert_frame_equal(Decisions.of(MEANS, upper).decision, want)
    pd.testing.assert_frame_equal(Decisions.of(MEANS, P.to_numpy()).decision, want)


def test_labels_may_be_numbers_and_in_any_script():
    names = [10, "Ωμέγα", "漢字"]
    p = pd.DataFrame(np.full((3, 3), 0.5), index=names, columns=["10", "Ωμέγα", "漢字"])
    assert Decisions.of(dict(zip(names, [1, 2, 3], strict=True)), p).levels == ("10", "Ωμέγα", "漢字")


def test_a_frame_brings_standard_errors_and_intervals_in_the_order_of_the_levels():
    frame = pd.DataFrame(
        {"mean": [2.0, 1.0], "se": [0.2, 0.1], "ci_low": [1.5, 0.8], "ci_high": [2.5, 1.2]}, ["A", "B"]
    )
    sep = Decisions.of(frame, np.array([[1, 0.5], [0.5, 1]]), interval_alpha=0.05)
    assert (sep.levels, sep.se, sep.ci_low, sep.ci_high) == (("B", "A"), (0.1, 0.2), (0.8, 1.5), (1.2, 2.5))
    assert sep.head(1).ci_high == (1.2,)


def test_the_omnibus_test_is_judged_at_the_level_of_the_decisions():
    assert Decisions.of(MEANS, P).omnibus_significant is None
    assert Decisions.of(MEANS, P, omnibus_p=0.06).omnibus_significant is False
    assert Decisions.of(MEANS, P, omnibus_p=0.06, alpha=0.1).omnibus_significant is True


TWO = {"A": 1.0, "B": 2.0}


def square(value, diagonal=1.0, names="AB"):
    return pd.DataFrame([[diagonal, value], [value, diagonal]], index=list(names), columns=list(names))


@pytest.mark.parametrize(("arguments", "message"), [
    ((TWO, square(1.2)), "p-values between 0 and 1, got 1.2 for A against B"),
    ((TWO, pd.DataFrame([[1, 0.3], [0.2, 1]], list("AB"), list("AB"))),
     "decisions must be symmetric: A against B has 0.3, B against A has 0.2"),
    ((TWO, pd.DataFrame([[False, True], [False, False]], list("AB"), list("AB"))),
     "A against B has True, B against A has False. Leave one triangle missing (NaN)"),
    ((TWO, square(0.5, names="AC")),
     "decisions.index must hold the names of the means: it lacks 'B'; the means lack 'C'"),
    ((TWO, square(0.5, names="AA")), "decisions.index has more than one 'A'"),
    ((pd.Series([1.0, 2.0], index=[1, "1"]), square(0.5)), "means has more than one '1'"),
    ((TWO, square(1, diagonal=0)), "only 0 and 1, which may be p-values or flags"),
    ((TWO, square("yes")), "either p-values or booleans, got 'yes'"),
    ((TWO, np.zeros((2, 3))), "a row and a column for each of the 2 means, got (2, 3)"),
    ((TWO, {"A": 1}), "decisions must be a square pandas.DataFrame"),
    ((pd.DataFrame({"x": [1, 2], "y": [1, 2]}, list("AB")), square(0.5)), "no column 'mean'. Columns: x, y"),
    (({"A": "one", "B": 2.0}, square(0.5)), "means['mean'] must hold numbers"),
    (({"A": np.inf, "B": 2.0}, square(0.5)), "must be finite or missing"),
    (({"A": np.nan, "B": np.nan}, square(0.5)), "no mean at all"),
    (({"A": 1.0}, square(0.5)), "two or more names, got 1"),
    ((pd.DataFrame({"mean": [1.0, 2], "ci_low": [2.0, 1], "ci_high": [3.0, 3]}, list("AB")), square(0.5)),
     "the interval of A, 2 to 3, does not hold its mean, 1."),
])  # fmt: skip
def test_what_contradicts_itself_is_refused(arguments, message):
    refuses(LmemtestError, re.escape(message), Decisions.of, *arguments)


@pytest.mark.parametrize(("options", "message"), [
    ({"critical_difference": (2.0, 1.0)}, "critical_difference must be a positive number"),
    ({"critical_difference": 0}, "critical_difference must be a positive number"),
    ({"alpha": 5}, "alpha must be a number between 0 and 1"),
    ({"direction": "up"}, "direction must be 'minimize' or 'maximize'"),
    ({"omnibus_p": 2.0}, "omnibus_p must be a p-value"),
    ({"score": 3}, "score must be a text"),
])  # fmt: skip
def test_bad_options_are_refused(options, message):
    refuses(LmemtestError, re.escape(message), Decisions.of, TWO, square(0.5), **options)
    flags = square(True, diagonal=False)
    with pytest.raises(LmemtestError, match=re.escape("omnibus_p is judged by the level of the decisions: give alpha")):
        Decisions.of(TWO, flags, omnibus_p=0.5)


@pytest.mark.parametrize("case", ["countries", "equal", "correlated"])
def test_sets_of_ranks_are_those_of_the_step_down_procedure_of_csranks(case):
    """Theirs keeps "not below" after "above" is found, so a set may be larger by a rank; ours never is."""
    reference = values("rank_sets")["cases"][case]
    k = len(reference["x"])
    names = [f"m{i:02d}" for i in range(k)]
    covariance = np.reshape(reference["covariance"], (k, k))
    options = {"V": covariance, "df": np.inf, "score": "score", "direction": "maximize"}
    sets = Estimates.of({"m": names}, b=reference["x"], **options).pairs(adjust="stepdown").decisions().columns(names)
    low, high = np.array(sets["rank_low"]), np.array(sets["rank_high"])
    wider = (low - reference["low"]) + (np.array(reference["high"]) - high)
    assert (low >= reference["low"]).all()
    assert (high <= reference["high"]).all()
    assert wider.max() <= 1
    assert wider.tolist().count(0) == {"countries": 26, "equal": 10, "correlated": 12}[case]


def test_a_critical_difference_beyond_any_that_helps_is_no_number():
    """t with 0.03 degrees of freedom, where a benchmark or two leave almost no interaction."""
    means = {"A": 0.1, "B": 0.2, "C": 0.4}
    p = pd.DataFrame(np.ones((3, 3)), index=list(means), columns=list(means))
    near, far = (
        dataclasses.replace(Decisions.of(means, p, direction="minimize", critical_difference=cd), se=(0.1,) * 3)
        for cd in (0.5, 1.3e48)
    )
    assert (near.out_of_reach, far.out_of_reach) == (False, True)
    assert not dataclasses.replace(
        near, means=(0.1, 0.10001, 0.10002)
    ).out_of_reach  # equal means are no lack of benchmarks
    assert "critical difference 0.5" in near.facts[0]
    assert "1.3e" not in far.facts[0]
    assert far.facts[0].endswith("no difference can be told with so few degrees of freedom: add benchmarks.")
    texts = [text.get_text() for text in far.plot().texts]
    assert not any("CD" in text or "beyond" in text for text in texts)
    assert (near.n_significant, Decisions.of(means, p * 0.01).n_significant) == (0, 3)
