"""What a table can answer: codes by design, numbers against closed forms, and who it is for."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
from refusals import refusal
from scipy import stats
from study import make_runs

import lmemtest as lt
from lmemtest.bench.checks.answerable import UNBLOCKS
from lmemtest.errors import ArgumentError


def codes(answer):
    """What each question is answered, and what blocks it."""
    table = answer.to_frame().set_index("question")
    return {name: (row["answerable"], row["blocked_by"]) for name, row in table.iterrows()}


def test_the_smallest_difference_is_that_of_the_paired_t_test():
    """Of two algorithms: noncentral t with the scatter of the paired differences, and the number of pairs it takes."""
    runs = make_runs(2, 9, 2, rng=3)
    answer = lt.answerable(runs, effect=0.4)
    table = runs.to_frame().groupby(["benchmark", "algorithm"])["loss"].mean().unstack()
    sd = float((table.iloc[:, 0] - table.iloc[:, 1]).std(ddof=1))

    def power(effect, n):
        t = stats.t.ppf(0.975, n - 1)
        shift = effect * np.sqrt(n) / sd
        return stats.nct.sf(t, n - 1, shift) + stats.nct.cdf(-t, n - 1, shift)

    assert_allclose(power(answer.detectable, 9), 0.8, atol=1e-6)
    needed = next(n for n in range(2, 10_000) if power(0.4, n) >= 0.8)
    assert (answer.effect, answer.more) == (0.4, max(needed - 9, 0))


def test_what_blocks_a_question_is_a_code_with_a_number():
    no_seeds = codes(lt.answerable(make_runs(3, 4, 1)))
    assert no_seeds["like_these"] == ("partly", "few_benchmarks")
    assert no_seeds["these"] == no_seeds["seeds"] == ("no", "no_repeats")
    assert no_seeds["budget"] == ("no", "no_budget")
    one = lt.answerable(make_runs(3, 1, 4))
    assert codes(one)["like_these"] == ("no", "one_benchmark")
    assert codes(one)["these"] == ("yes", "")
    assert one.to_frame().set_index("question").loc["like_these", "n_needed"] == 5
    curves = codes(lt.answerable(make_runs(3, 8, 3, budgets=[1, 3, 9])))
    assert curves["budget"] == curves["tuning"] == ("yes", "")
    assert curves["these"] == ("yes", "")
    few = make_runs(3, 8, 3)
    lone = few.to_frame().query("benchmark != 'b03' or algorithm != 'B' or seed == 0")
    assert codes(lt.answerable(lt.Runs(lone, **few.roles())))["these"] == ("no", "no_repeats")


def test_algorithms_that_never_met_benchmarks_without_scores_and_equal_advantages_block_it():
    frame = make_runs(2, 8, 2).to_frame()
    roles = make_runs(2, 8, 2).roles()
    apart = frame[(frame["algorithm"] == "A") == (frame["benchmark"] < "b04")]
    assert codes(lt.answerable(lt.Runs(apart, **roles)))["like_these"] == ("no", "never_met")
    gaps = frame.assign(loss=frame["loss"].where(frame["benchmark"] != "b03"))
    assert codes(lt.answerable(lt.Runs(gaps, **roles)))["like_these"] == ("no", "scores")
    additive = frame.assign(loss=frame["benchmark"].astype("category").cat.codes + (frame["algorithm"] == "B") * 1.0)
    found = lt.answerable(lt.Runs(additive, **roles))
    assert codes(found)["size"] == ("no", "no_scatter")
    assert np.isnan(found.detectable)


def test_a_frame_is_read_by_names_and_structure_or_nothing_is_claimed():
    frame = make_runs(3, 8, 3).to_frame()
    named = lt.answerable(frame.rename(columns={"loss": "log_loss"}))
    assert named.roles["score"] == "log_loss"
    assert "Roles by names and structure" in named.facts[0]
    unknown = lt.answerable(frame.drop(columns="loss"))
    assert codes(unknown)["like_these"] == ("no", "roles")
    assert unknown.roles == {}
    assert set(unknown.to_frame()["command"]) == {""}


def test_of_several_readings_the_first_is_answered_and_the_others_are_told():
    frame = make_runs(3, 8, 3).to_frame()
    first = lt.answerable(frame.assign(regret=frame["loss"] / 2.0))
    assert codes(first) == codes(lt.answerable(frame))
    assert (first.roles["score"], first.others) == ("loss", ({"score": "regret"},))
    assert "score='loss'" in first.facts[0]
    assert "score='regret'" in first.facts[1]
    either = lt.answerable(frame.rename(columns={"loss": "x"}))
    assert (either.roles["direction"], either.others) == ("maximize", ({"direction": "minimize"},))
    wide = frame.groupby(["benchmark", "algorithm"])["loss"].mean().unstack().reset_index()
    assert codes(lt.answerable(wide))["like_these"] == ("yes", "")
    assert lt.answerable(frame).others == ()


def test_failed_runs_count_the_worst_score_and_a_column_that_tells_them_is_named():
    """Worst scores are put in by hand; kinds are taken only where they tell exactly the runs without a score."""
    frame = make_runs(3, 8, 3).to_frame()
    out = frame.index % 13 == 0
    worst = frame.assign(loss=frame["loss"].where(~out)).groupby("benchmark")["loss"].transform("max")
    by_hand = lt.answerable(frame.assign(loss=frame["loss"].where(~out, worst)))
    gaps = frame.assign(loss=frame["loss"].where(~out))
    kinds = np.where(out, "timeout", "ok")
    tables = {
        "missing": gaps,
        "nonfinite": frame.assign(loss=frame["loss"].where(~out, np.inf)),
        "OOM": frame.astype({"loss": object}).assign(loss=lambda t: t["loss"].where(~out, "OOM")),
        "status": gaps.assign(status=kinds),
    }
    for way, table in tables.items():
        answer = lt.answerable(table)
        assert answer.failed == (way,)
        assert answer.detectable == by_hand.detectable
        assert "6 failed runs of 3 algorithms were given the worst score" in answer.facts[-1]
    also_well = gaps.assign(status=np.where(frame.index == 1, "timeout", kinds))
    assert lt.answerable(also_well).failed == ("missing",)
    assert by_hand.failed == ()


def test_answers_to_items_and_votes_are_told_from_runs():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 2, (40, 3)), columns=["gpt", "llama", "qwen"])
    assert codes(lt.answerable(wide))["tasks"] == ("no", "one_task")
    with_tasks = lt.answerable(wide.assign(subject=np.arange(40) % 8))
    assert codes(with_tasks)["tasks"] == ("yes", "")
    assert codes(with_tasks)["like_these"] == ("no", "of_items")
    assert codes(with_tasks)["these_items"] == ("no", "no_epochs")
    sides = {"model_a": list("ABC") * 20, "model_b": list("BCA") * 20, "winner": ["model_a", "model_b", "tie"] * 20}
    assert codes(lt.answerable(pd.DataFrame(sides)))["like_these"] == ("no", "of_votes")
    trials = codes(lt.answerable(pd.DataFrame({"lr": rng.uniform(size=20), "loss": rng.uniform(size=20)})))
    assert trials["tuning"] == ("partly", "trials")
    assert trials["like_these"] == ("no", "roles")


def test_it_is_invariant_to_the_unit_and_to_the_order_of_rows():
    runs = make_runs(4, 9, 2, rng=5)
    frame = runs.to_frame().sample(frac=1.0, random_state=1)
    scaled = lt.answerable(
        lt.Runs(frame.assign(loss=-1000.0 * frame["loss"]), **{**runs.roles(), "direction": "maximize"})
    )
    first = lt.answerable(runs)
    assert_allclose(scaled.detectable, 1000.0 * first.detectable)
    assert codes(scaled) == codes(first)


def test_every_code_has_words_and_a_bad_effect_is_refused():
    for code in set(lt.answerable(make_runs(3, 4, 1)).to_frame()["blocked_by"]) - {""}:
        assert code in UNBLOCKS
    assert "effect must be" in refusal(lambda: lt.answerable(make_runs(3, 8, 2), effect=0.0), ArgumentError)
