"""Variance studies: closed forms, analysis of variance by hand, invariances, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from refusals import refusal, refuses
from scipy import stats

import lmemtest as lt
from lmemtest.bench.variation.trainings import identified
from lmemtest.errors import ArgumentError, DataError, DesignError, UnknownColumnError
from lmemtest.lmm.intervals.variance_intervals import Combinations, SampleVariance, widening

SOURCES = ["data", "init", "order"]
NUMBERS = ["variance", "ci_low", "ci_high", "share", "share_low", "share_high", "relative", "relative_low"]


def one_at_a_time(n=12, repeated=10, at_once=15, first=100, rng=0):
    """Each source with n seeds and all others at 0; seeds of trainings with everything new begin at `first`."""
    draw = np.random.default_rng(rng)
    seeds = [{**dict.fromkeys(SOURCES, 0), source: k} for source in SOURCES for k in range(1, n + 1)]
    seeds += [dict.fromkeys(SOURCES, 0)] * repeated + [dict.fromkeys(SOURCES, first + k) for k in range(at_once)]
    return pd.DataFrame(seeds).assign(acc=lambda t: 0.8 + 0.02 * draw.normal(size=len(t)) * (1 + (t["data"] > 0)))


def studied(table, **options):
    return lt.variance_sources(table, score="acc", sources=SOURCES, **options)


# ---------------------------------------------------------------------- intervals


def test_intervals_of_one_variance_are_the_published_formulas():
    x = np.random.default_rng(1).exponential(size=30)
    n, z, s2 = 30, stats.norm.ppf(0.95), x.var(ddof=1)
    tails = stats.chi2.ppf([0.95, 0.05], n - 1)
    found = SampleVariance.of([x], 0.9, "chi-squared")
    assert_allclose([found.value, found.low, found.high], [s2, *((n - 1) * s2 / tails)])
    centre = stats.trim_mean(x, 1 / (2 * np.sqrt(n - 4)))
    kurtosis = n * np.sum((x - centre) ** 4) / np.sum((x - x.mean()) ** 2) ** 2
    c, error = n / (n - z), np.sqrt((kurtosis - (n - 3) / n) / (n - 1))
    found = SampleVariance.of([x], 0.9)
    assert_allclose([found.low, found.high], np.exp(np.log(c * s2) + z * c * error * np.array([-1, 1])))
    assert SampleVariance.of([np.ones(9)], 0.9).high == 0.0


def test_several_samples_are_pooled_within():
    x = np.random.default_rng(2).normal(size=(40, 2)) + 10 * np.arange(40)[:, None]  # pairs far from each other
    found = SampleVariance.of(list(x), 0.95)
    assert found.df == 40
    assert_allclose(found.value, x.var(axis=1, ddof=1).mean())
    # the same number for differences of pairs, whose law is what the pairs say of the kurtosis
    d = np.diff(x).ravel() / 2**0.5
    assert_allclose(found.value, np.mean(d**2))
    error = 41 / (41 - 1.959964) * np.sqrt((40 * np.sum(d**4) / np.sum(d**2) ** 2 - 38 / 41) / 40)
    assert_allclose(found.log_error, error, rtol=1e-6)


def test_ratios_hold_what_the_interval_of_the_numerator_less_a_multiple_holds():
    of = Combinations(np.array([4.0, 1.0, 0.2]), np.array([3.0, 0.5, 0.1]), np.array([6.0, 2.0, 0.5]))
    above, below = np.array([1.0, 0.0, -1.0]), np.array([1.0, 1.0, -1.0])
    low, high = of.ratio(above, below)
    assert low < 3.8 / 4.8 < high
    assert_allclose(of.interval(above - low * below)[0], 0.0, atol=1e-9)
    assert_allclose(of.interval(above - high * below)[1], 0.0, atol=1e-9)
    zero = Combinations(np.array([1.0, 0.5]), np.array([0.5, 0.0]), np.array([2.0, 2.0]))
    assert zero.ratio(np.array([1.0, 0.0]), np.array([0.0, 1.0]))[1] == np.inf


def test_variances_are_identified_where_their_matrices_are_no_combination_of_the_others():
    rng = np.random.default_rng(3)
    n = 12
    tables = [
        {"a": rng.integers(0, 4, n), "b": rng.integers(0, 3, n), "c": rng.integers(0, 2, n)},
        {"a": np.arange(n), "b": np.repeat(range(4), 3), "c": np.repeat(range(4), 3)},
        {"a": np.zeros(n, dtype=int), "b": np.tile(range(4), 3), "c": np.repeat(range(3), 4)},
    ]
    P = np.eye(n) - 1 / n
    for table in tables:
        codes = {name: np.unique(code, return_inverse=True)[1] for name, code in table.items()}
        every = {**codes, "": np.arange(n)}
        flat = {name: (P @ (code[:, None] == code) @ P).ravel() for name, code in every.items()}
        rank = np.linalg.matrix_rank(np.array(list(flat.values())))
        want = [
            name
            for name in codes
            if np.linalg.matrix_rank(np.array([v for other, v in flat.items() if other != name])) < rank
        ]
        assert identified(codes, n) == want


# ---------------------------------------------------------------------- one at a time


def test_sources_are_sample_variances_less_the_noise():
    table = one_at_a_time()
    found = studied(table).sources.set_index("source")["variance"]
    fixed = (table[SOURCES] == 0).all(axis=1)
    noise = table.loc[fixed, "acc"].var()
    assert_allclose(found["noise"], noise)
    for source in SOURCES:
        others = [other for other in SOURCES if other != source]
        line = table[(table[others] == 0).all(axis=1)].groupby(source)["acc"].mean()  # the reference is a mean of ten
        assert len(line) == 13
        assert_allclose(found[source], max(line.var() - noise * (12 + 1 / 10) / 13, 0.0))


def test_all_at_once_is_compared_with_the_sum():
    table = one_at_a_time()
    study = studied(table)
    row, sd = study.at_once.iloc[0], table.loc[table["data"] >= 100, "acc"].std()
    parts = study.sources.set_index("source")
    assert (row["sources"], row["n"]) == ("data, init and order", 15)
    lines = [
        table[(table[[o for o in SOURCES if o != s]] == 0).all(axis=1)].groupby(s)["acc"].mean().var() for s in SOURCES
    ]
    added = sum(lines) - (3 * (12 + 1 / 10) / 13 - 1) * parts.loc["noise", "variance"]
    assert_allclose([row["sd"], row["added_sd"] ** 2, row["ratio"]], [sd, added, sd**2 / added])
    # the interval leaves 1 out exactly where the p-value is below the level
    alpha = row["p_raw"]
    assert studied(table, alpha=alpha + 1e-6).at_once[["ratio_low", "ratio_high"]].sub(1).prod(axis=1)[0] > 0
    assert studied(table, alpha=alpha - 1e-6).at_once[["ratio_low", "ratio_high"]].sub(1).prod(axis=1)[0] < 0


def test_designs_in_one_table_are_told_apart():
    """Beside the sources one at a time: four tuning runs with six new trainings each, and three of no design."""
    table = one_at_a_time(at_once=0).assign(tuning=0)
    new = pd.DataFrame({"tuning": np.repeat(range(1, 5), 6)}).assign(**{s: range(200, 224) for s in SOURCES})
    new["acc"] = new["tuning"] + np.random.default_rng(11).normal(size=24)
    odd = pd.DataFrame({"tuning": [9, 9, 8], "data": [3, 5, 4], "init": [3, 5, 4], "order": [7, 8, 4], "acc": 0.5})
    study = lt.variance_sources(pd.concat([table, new, odd]), score="acc", sources=["tuning", *SOURCES])
    row = study.at_once.iloc[0]
    assert (len(study.at_once), row["sources"], row["n"]) == (1, "data, init and order", 24)
    assert_allclose(row["sd"] ** 2, new.groupby("tuning")["acc"].var().mean())
    assert study.designs[["design", "left_over"]].values.tolist() == [["one at a time", 3]]
    assert any(note.startswith("3 trainings are neither one at a time nor all at once") for note in study.notes)
    rows = study.sources.set_index("source")
    assert np.isnan(rows.loc["tuning", "variance"])
    assert_allclose(rows.loc[SOURCES, "variance"], studied(table).sources.set_index("source").loc[SOURCES, "variance"])


def test_names_of_seeds_order_of_rows_and_unit_of_the_score_do_not_matter():
    table = one_at_a_time()
    want = studied(table).sources[NUMBERS].to_numpy()
    again = one_at_a_time(first=1)  # the seeds of single sources used again for everything at once
    again["init"] = "seed " + again["init"].astype(str)
    again = again.sample(frac=1.0, random_state=1)
    assert_allclose(studied(again).sources[NUMBERS], want)
    scaled = table.assign(acc=100 * table["acc"] - 3)
    got = studied(scaled).sources
    assert_allclose(got[NUMBERS[3:]], want[:, 3:], rtol=1e-7)
    assert_allclose(got["ci_high"], 100 * want[:, 2])


def test_without_trainings_run_again_nothing_is_taken_off_and_no_sum_is_judged():
    study = studied(one_at_a_time(repeated=1))
    assert "noise" not in set(study.sources["source"])
    assert study.at_once["p_value"].isna().all()
    assert any("each variance contains the numerical noise" in note for note in study.notes)
    assert not any("the sum of theirs" in text for text in study.sentences())


def test_equal_scores_of_equal_seeds_are_no_noise_and_of_a_source_no_interval():
    table = one_at_a_time(at_once=0)
    table.loc[(table["data"] == 0) & (table["init"] == 0), "acc"] = 0.8
    study = studied(table)
    rows = study.sources.set_index("source")
    assert rows.loc["noise", ["variance", "ci_high"]].tolist() == [0.0, 0.0]
    assert np.isnan(rows.loc["order", ["ci_low", "ci_high", "share_high"]].astype(float)).all()
    assert_allclose(rows.loc["data", "variance"], study.scores.query("source == 'data'")["score"].var())
    text = " ".join(study.notes)
    assert "no numerical noise is seen" in text
    assert "All scores of order are equal" in text


def test_groups_are_studied_by_themselves():
    one, two = one_at_a_time(rng=1).assign(tool="A", task="x"), one_at_a_time(rng=2).assign(tool="B", task="x")
    both = studied(pd.concat([one, two]), algorithm="tool", benchmark="task")
    rows = both.sources[both.sources["algorithm"] == "B"].reset_index(drop=True)
    assert_allclose(rows[NUMBERS], studied(two).sources[NUMBERS])
    p = both.at_once["p_raw"].to_numpy()
    assert_allclose(both.at_once["p_value"], np.minimum(1.0, np.maximum(2 * p.min(), p)))
    assert both.sentences()[0].startswith("A on x: the largest part of the variance is ")
    assert "(Holm-adjusted p = " in both.sentences()[-1]
    assert "(p = " in studied(two).sentences()[-1]
    mean = both.components()
    assert_allclose(mean.sources["data"] ** 2, both.sources.query("source == 'data'")["variance"].mean())
    assert mean.interaction_sd is None
    alone = both.components(algorithm="B")
    assert_allclose(alone.residual_sd, rows.set_index("source").loc["noise", "sd"])
    refuses(ArgumentError, "algorithm must be one of A, B, got 'C'", both.components, algorithm="C")


def test_what_is_not_identified_has_no_number():
    table = one_at_a_time(at_once=0)
    table["init"] = table["data"]  # changes with data alone
    table = table.assign(dropout=7)
    found = lt.variance_sources(table, score="acc", sources=[*SOURCES, "dropout"])
    rows = found.sources.set_index("source")
    assert rows.loc[["data", "init", "dropout"], "variance"].isna().all()
    assert rows.loc["order", "variance"] >= 0
    assert list(found.components().sources) == ["order"]
    text = " ".join(found.notes)
    assert "data and init always change together" in text
    assert "dropout never varied" in text


# ---------------------------------------------------------------------- crossed


def test_a_balanced_crossed_table_gives_the_analysis_of_variance():
    rng = np.random.default_rng(4)
    a, b, r = 6, 5, 3
    y = rng.normal(size=(a, 1, 1)) + 0.7 * rng.normal(size=(1, b, 1)) + 0.6 * rng.normal(size=(a, b, 1))
    y = y + 0.5 * rng.normal(size=(a, b, r))
    seeds = np.array(list(itertools.product(range(a), range(b), range(r))))
    table = pd.DataFrame({"data": seeds[:, 0], "init": seeds[:, 1], "acc": y.ravel()})
    study = lt.variance_sources(table, score="acc", sources=["data", "init"])
    cell, row, column = y.mean(axis=2), y.mean(axis=(1, 2)), y.mean(axis=(0, 2))
    within = ((y - cell[:, :, None]) ** 2).sum() / (a * b * (r - 1))
    left = cell - row[:, None] - column + y.mean()
    both = r * (left**2).sum() / ((a - 1) * (b - 1))
    want = {
        "data": (b * r * row.var(ddof=1) - both) / (b * r),
        "init": (a * r * column.var(ddof=1) - both) / (a * r),
        "data:init": (both - within) / r,
        "noise": within,
    }
    assert min(want.values()) > 0
    assert_allclose(study.sources.set_index("source")["variance"][list(want)], list(want.values()), rtol=1e-4)
    assert study.designs["design"].tolist() == ["crossed"]


def test_copies_of_a_crossed_table_change_nothing():
    rng = np.random.default_rng(9)
    seeds = np.array(list(itertools.product(range(5), range(4))))
    table = pd.DataFrame(seeds, columns=["data", "init"])
    table["acc"] = rng.normal(size=5)[table["data"]] + rng.normal(size=4)[table["init"]] + 0.5 * rng.normal(size=20)
    one, two = (
        lt.variance_sources(t, score="acc", sources=["data", "init"]) for t in (table, pd.concat([table, table]))
    )
    assert_allclose(two.sources[NUMBERS].astype(float), one.sources[NUMBERS].astype(float))
    assert two.sources["source"].tolist() == ["data", "init", "residual"]
    assert any("no numerical noise is seen" in note for note in two.notes)


def test_tuning_runs_with_everything_else_new_identify_tuning_alone():
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"tuning": np.repeat(range(6), 5), "data": range(30), "init": range(30)})
    table["acc"] = rng.normal(size=6)[table["tuning"]] + rng.normal(size=30)
    study = lt.variance_sources(table, score="acc", sources=["tuning", "data", "init"])
    rows = study.sources.set_index("source")
    assert rows.loc[["data", "init"], "variance"].isna().all()
    groups = table["acc"].to_numpy().reshape(6, 5)
    within = groups.var(axis=1, ddof=1).mean()
    assert_allclose(rows.loc["residual", "variance"], within, rtol=1e-5)
    assert_allclose(rows.loc["tuning", "variance"], groups.mean(axis=1).var(ddof=1) - within / 5, rtol=1e-4)
    assert any("the residual holds the sum of their variances" in note for note in study.notes)


def test_new_seeds_of_everything_are_refused_with_a_way_out():
    table = pd.DataFrame({name: range(20) for name in SOURCES}).assign(acc=np.random.default_rng(6).normal(size=20))
    refuses(DesignError, r"data, init and order are confounded: .* Vary one source at a time", studied, table)


@pytest.mark.parametrize(
    ("table", "sources", "words"),
    [
        (one_at_a_time().assign(acc=1.0), SOURCES, "all scores are the same"),
        (one_at_a_time().assign(acc="high"), SOURCES, "must be numbers"),
        (one_at_a_time().assign(acc=np.nan), SOURCES, "'acc' has 61 missing values"),
        (one_at_a_time().assign(init=None), SOURCES, "'init' has 61 missing values"),
        (one_at_a_time(), ["data", "ordr"], "'ordr', which is not in the data"),
        (one_at_a_time().rename(columns={"init": "noise"}), ["data", "noise"],
         "has 'noise', a name that the table of results uses"),
        ({"a with b": [0, 1], "acc": [0.1, 0.2]}, ["a with b"], "' with ' joins names of sources in the results"),
        (one_at_a_time().assign(acc=lambda t: 1e-150 * t["acc"]), SOURCES, "Give them in another unit"),
        (one_at_a_time(), None, "score is for tables of trainings, and needs sources=[...]"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused_in_words(table, sources, words):
    kinds = (ArgumentError, DataError, DesignError, UnknownColumnError)
    assert words in refusal(lambda: lt.variance_sources(table, score="acc", sources=sources), kinds)


# ---------------------------------------------------------------------- what is not known has no number


def test_lines_with_the_same_seeds_are_no_samples_of_their_own():
    """Twenty splits at two settings are twenty splits, not forty."""
    effects = np.random.default_rng(4).normal(size=20)
    table = pd.DataFrame({"data": [*range(20)] * 2, "init": np.repeat([0, 1], 20), "order": np.repeat([0, 1], 20)})
    table["acc"] = effects[table["data"]] + 0.05 * np.random.default_rng(5).normal(size=40)
    found = studied(table)
    row = found.sources.set_index("source").loc["data"]
    assert (found.designs["design"][0], row["n"]) == ("crossed", 20)
    alone = SampleVariance.of([table["acc"].to_numpy().reshape(2, 20).mean(axis=0)], 0.95, "chi-squared")
    assert_allclose([row["ci_low"], row["ci_high"]], np.sqrt([alone.low, alone.high]), rtol=0.05)
    apart = table.assign(data=table["data"] + 20 * table["init"])
    assert studied(apart).sources.set_index("source").loc["data", "n"] == 40


def test_shares_have_no_interval_where_a_part_has_none():
    flat = one_at_a_time().assign(acc=lambda t: np.where(t["data"] > 0, t["acc"], 0.8))
    found = studied(flat)
    assert found.sources[["share_low", "share_high"]].isna().all(axis=None)
    assert found.sentences()[0].startswith("The largest part of the variance is data: 100 % of the sum, standard")
    few = {"data": [0, 0, 1, 1], "init": [0, 1, 0, 1], "acc": [0.0, 1.0, 0.5, 1.2]}
    (_, text, *_) = lt.variance_sources(few, score="acc", sources=["data", "init"]).sentences()
    assert text.endswith(" or more).")  # a ratio without an upper end
    assert not any("nan" in text or "inf" in text for text in found.sentences())
    single = lt.variance_sources({"data": [0, 1, 2], "acc": [0.1, 0.3, 0.4]}, score="acc", sources=["data"])
    assert single.sources["share_low"].isna().all()
    assert single.sentences()[0].startswith("Of data alone the variance is known: standard deviation 0.153 (95 % inte")


def test_components_say_where_sources_without_a_number_are():
    data, init = np.repeat(range(4), 5), np.tile(range(5), 4)
    draw = np.random.default_rng(3)
    table = pd.DataFrame({"data": data, "init": init, "tuning": init, "dropout": range(20)})
    table["acc"] = draw.normal(size=4)[data] + draw.normal(size=5)[init] + draw.normal(size=20)
    study = lt.variance_sources(table, score="acc", sources=list(table.columns[:4]))
    assert study.sentences()[0].startswith("Of the parts with a number the largest is ")
    assert "dropout changed with every training: the variance is in the residual." in study.notes
    found = study.components()
    assert "Without numbers of their own, and a part of residual_sd: dropout." in found.notes
    assert not any("none of the numbers" in note for note in found.notes)
    with pytest.raises(ArgumentError, match="trials must be given"):  # what may be tuning has its price
        lt.plan(study, budget=100)
    plan = lt.plan(study, budget=100, trials=5)
    assert plan.names == ("tuning", "data", "seed")
    assert_allclose(plan.stage_table()["sd"][0], found.sources["init with tuning"])


def test_extreme_levels_have_intervals():

    few = SampleVariance.of([np.array([1.0, 2.0, 4.0, 5.0, 8.0])], 1 - 1e-9)
    assert 0.0 < few.low < few.value < few.high < np.inf


def crossed_table(draw, n: int = 12) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    effects = draw(rng, n), 0.5 * rng.normal(size=n)
    rows = [(i, j, effects[0][i] + effects[1][j] + 0.2 * rng.normal()) for i in range(n) for j in range(n)]
    return pd.DataFrame(rows, columns=["data", "init", "acc"])


def test_crossed_intervals_are_longer_where_predicted_effects_are_skewed():
    """The profile of the mixed model where they are not; on the log scale as much longer as `widening` says."""
    table = crossed_table(lambda rng, n: -(rng.exponential(size=n) ** 1.5))
    study = lt.variance_sources(table, score="acc", sources=["data", "init"])
    fit = lt.fit_lmm("acc ~ 1 + (1 | data) + (1 | init)", table)
    plain = fit.profile(["sd"], reml=True).table
    got = study.sources.set_index("source")
    for i, name in enumerate(("data", "init")):
        factor = widening(fit.modes[i].ravel())
        for end in ("ci_low", "ci_high"):
            ratio = np.log(got.loc[name, end] / got.loc[name, "sd"]) / np.log(
                plain[end].iloc[i] / plain["estimate"].iloc[i]
            )
            assert_allclose(ratio, factor, rtol=1e-4)
    x = fit.modes[0].ravel()
    assert_allclose(widening(x) ** 2 * (3 - 9 / 12) + 9 / 12, 3 + 1.5 * stats.skew(x, bias=False) ** 2)
    assert widening(x) > 1.3
    assert "Longer on the log scale are those of data (" in " ".join(study.notes)


@pytest.mark.parametrize(
    ("size", "may_be_largest", "start"),
    [(0.6, [True, True, False], "is estimated to be data: "), (4.0, [True, False, False], "is data: ")],
)
def test_the_largest_part_is_named_where_the_intervals_show_it(size, may_be_largest, start):
    table = crossed_table(lambda rng, n: size * rng.normal(size=n))
    found = lt.variance_sources(table, score="acc", sources=["data", "init"])
    rows = found.sources.set_index("source").loc[["data", "init", "residual"]]
    assert rows["may_be_largest"].tolist() == may_be_largest
    assert found.sentences()[0].startswith(f"The largest part of the variance {start}")
    assert found.sentences()[0].endswith("; init cannot be excluded.") == may_be_largest[1]
    assert (rows.loc["init", "relative_high"] < 1.0) == (not may_be_largest[1])


def test_runs_name_the_score_and_the_studies_themselves():
    table = pd.concat([one_at_a_time(rng=1).assign(tool="A"), one_at_a_time(rng=2).assign(tool="B")])
    runs = lt.Runs(table, score="acc", direction="maximize", algorithm="tool", ignore=SOURCES)
    found, want = lt.variance_sources(runs, sources=SOURCES), studied(table, algorithm="tool")
    for part in want.tables:
        pd.testing.assert_frame_equal(found.to_frame(part), want.to_frame(part))
