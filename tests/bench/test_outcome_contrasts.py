"""Which further metafeatures may vary, and what random signs leave open."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from refusals import refusal

import lmemtest as lt
from lmemtest.bench.benchmark.metafeature_effect import metafeature_effect
from lmemtest.bench.benchmark.metafeature_outcomes import decided, metafeature_outcomes
from lmemtest.errors import ArgumentError, DataError

PAIR = ("HB+prior", "HB")


@pytest.fixture(scope="module")
def bundled() -> lt.Runs:
    return lt.datasets.load_hpo_runs()


def with_metafeatures(runs: lt.Runs, *names: str, **columns: object) -> lt.Runs:
    return lt.Runs(runs.to_frame().assign(**columns), **{**runs.roles(), "metafeatures": names})


# ---------------------------------------------------------------------- further metafeatures


def test_a_further_metafeature_that_is_constant_within_benchmarks_changes_nothing(bundled):
    further = with_metafeatures(bundled, "prior", "model", "dataset")
    want = metafeature_outcomes(bundled, PAIR, "prior", n_draws=199, rng=0)
    got = metafeature_outcomes(further, PAIR, "prior", n_draws=199, rng=0)
    pd.testing.assert_frame_equal(got.to_frame(), want.to_frame())
    assert got.notes == want.notes
    models = [
        metafeature_effect(runs.filter(budget=8), algorithms=PAIR, metafeature="prior", rng=1)
        for runs in (further, bundled)
    ]
    pd.testing.assert_frame_equal(models[0].to_frame(), models[1].to_frame())


def test_one_that_varies_for_other_algorithms_or_levels_only_changes_nothing(bundled):
    other = lambda d: np.where((d["algorithm"] == "RS") & (d["seed"] % 2 == 0), "x", "y")  # noqa: E731
    got = metafeature_outcomes(
        with_metafeatures(bundled, "prior", "machine", machine=other), PAIR, "prior", n_draws=199
    )
    assert len(got.to_frame()) == 20


def test_one_that_varies_within_benchmarks_is_refused_with_the_level_that_keeps_most_of_them(bundled):
    def machine(d: pd.DataFrame) -> np.ndarray:
        return np.where((d["model"] == "svm") & (d["seed"] % 2 == 0), "a", "z")

    assert refusal(
        lambda: metafeature_outcomes(with_metafeatures(bundled, "prior", "machine", machine=machine), PAIR, "prior"),
        ArgumentError,
    ) == (
        "metafeature 'prior' cannot be studied by itself: a further metafeature, 'machine', varies within 4 of 20 "
        "benchmarks, and its levels would be mixed up. Take one of them, runs.filter(machine='z') (20 of 20 "
        "benchmarks), or make one column of both."
    )


def test_one_that_goes_along_with_the_metafeature_is_refused_without_a_filter_that_leaves_nothing(bundled):
    def strength(d: pd.DataFrame) -> pd.Series:
        return d["prior"].map({"bad": 0.1, "good": 0.9})

    assert refusal(
        lambda: metafeature_outcomes(with_metafeatures(bundled, "prior", "strength", strength=strength), PAIR, "prior"),
        ArgumentError,
    ) == (
        "metafeature 'prior' cannot be studied by itself: a further metafeature, 'strength', varies within 20 of 20 "
        "benchmarks, and prior never changes while it stays the same. Make one column of both, or name one of them "
        "only: Runs(..., metafeatures=...)."
    )


def test_a_metafeature_of_the_benchmark_is_refused_for_that_and_not_for_the_others(bundled):
    further = with_metafeatures(bundled, "prior", "model")
    with pytest.raises(DataError, match=r"^model is constant within every benchmark \(benchmark\)"):
        metafeature_outcomes(further, PAIR, "model")


# ---------------------------------------------------------------------- random signs


def test_positions_are_names_and_the_question_has_one_name(bundled):
    runs = bundled.filter(model=["forest", "svm"])
    first = metafeature_effect(runs, PAIR, "prior", method="outcomes", rng=0)
    named = metafeature_outcomes(runs, algorithms=PAIR, metafeature="prior", n_draws=9999, rng=0)
    pd.testing.assert_frame_equal(first.to_frame(), named.to_frame())
    assert first.to_frame()["p_raw"].min() == 1e-4  # (1 + 0) / (9999 + 1)


def contrasts(*p: float, adjusted: tuple[float, ...] | None = None, sign: float = 1.0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "benchmark": [f"b{i}" for i in range(len(p))],
            "level": "good",
            "reference": "bad",
            "contrast": sign * np.ones(len(p)),
            "p_raw": p,
            "p_value": p if adjusted is None else adjusted,
        }
    )


OVERALL = pd.DataFrame({"level": ["good"], "reference": ["bad"], "contrast": [1.0], "p_value": [0.001]})


@pytest.mark.parametrize(
    ("table", "close"),
    [
        (contrasts(0.001, 0.03, 0.2), None),
        # the binomial standard error of 0.0101 is 0.001, five times that after adjustment
        (
            contrasts(0.0101, 0.5, adjusted=(0.0505, 1.0)),
            "b0 (adjusted p = 0.051, limit 0.05, error 0.01)",
        ),
        (contrasts(0.103, adjusted=(0.9,)), "b0 (unadjusted p = 0.103, limit 0.1, error 0.0061)"),
        (contrasts(0.103, adjusted=(0.9,), sign=-1.0), None),
        (contrasts(0.052, adjusted=(0.9,), sign=-1.0), "b0 (unadjusted p = 0.052, limit 0.05, error 0.0044)"),
        (contrasts(0.108, adjusted=(0.9,)), None),
    ],
)
def test_p_values_within_their_monte_carlo_error_of_a_limit_are_noted(table, close):
    notes = decided(table, OVERALL, 0.05, 9999)[1]
    if close is None:
        assert notes == []
    else:
        assert notes == [
            "Close calls, which other random signs could change: the Monte Carlo error of a p-value (two standard "
            f"errors, n_draws=9,999) reaches the limit it is compared with: {close}. A larger n_draws settles it."
        ]


def test_verdicts_that_change_with_the_signs_are_among_the_close_calls(bundled):
    found = [metafeature_outcomes(bundled, PAIR, "prior", n_draws=1999, rng=seed) for seed in range(6)]
    verdicts = pd.DataFrame([result.contrasts.set_index("benchmark")["decision"] for result in found])
    changing = [name for name in verdicts if verdicts[name].nunique() > 1]
    assert changing
    for name in changing:
        assert any(re.search(rf"Close calls.* {name} \(", result.notes[-1]) for result in found)


def test_contrasts_of_several_pairs_are_named_with_their_levels():
    table = pd.concat([contrasts(0.05), contrasts(0.5).assign(reference="none")], ignore_index=True)
    overall = pd.concat([OVERALL, OVERALL.assign(reference="none")], ignore_index=True)
    (note,) = decided(table, overall, 0.05, 9999)[1]
    assert ": b0, good - bad (adjusted p = 0.050, limit 0.05, error 0.0044). " in note


def test_without_random_signs_there_is_no_such_note(bundled):
    found = metafeature_outcomes(bundled, PAIR, "prior", unit="budget")
    assert not any(note.startswith("Close calls") for note in found.notes)


def test_pairs_without_a_common_seed_have_no_outcomes(bundled):
    frame = bundled.to_frame()
    apart = frame.assign(seed=frame["seed"] + 1000 * (frame["algorithm"] == PAIR[0]))
    runs = lt.Runs(apart, **bundled.roles())
    with pytest.raises(
        DataError, match=r"have outcomes at two levels on no benchmark\. test='paired' takes runs of both"
    ):
        metafeature_outcomes(runs, PAIR, "prior", test="paired", n_draws=99)
