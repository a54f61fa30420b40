"""Every kind of score is recognised on generated tables, and gets its own advice and no other."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from levels import first

from lmemtest.bench.checks.check import check_rules
from lmemtest.bench.checks.findings import RunsCheck
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.data.scales import looks_like, remedies, scale_ratio, score_kind, spreads
from lmemtest.core.caller import on_command_line
from lmemtest.errors import DataError
from lmemtest.lmm.formula import parse_formula

SEEDS = range(4)
ROLES: dict[str, Any] = {"algorithm": "tool", "benchmark": "task", "seed": "seed"}


def grid(tools: int, tasks: int, seeds: int) -> pd.DataFrame:
    index = pd.MultiIndex.from_product(
        [[f"s{i}" for i in range(tools)], range(tasks), range(seeds)], names=["tool", "task", "seed"]
    )
    return index.to_frame(index=False)


def code(frame: pd.DataFrame) -> np.ndarray:
    return frame["tool"].str[1:].astype(int).to_numpy()


def answers(seed: int, *, questions: int = 200, samples: int = 1) -> Runs:
    """Four models, right or wrong, on questions of different difficulty; some are solved by all or by none."""
    rng = np.random.default_rng(seed)
    frame = grid(4, questions, samples)
    ability = np.array([-0.5, 0.0, 0.3, 0.6])[code(frame)] - rng.normal(0, 2, questions)[frame["task"]]
    frame["score"] = (rng.random(len(frame)) < 1 / (1 + np.exp(-ability))).astype(int)
    return Runs(frame, score="score", direction="maximize", **ROLES)


def runtimes(seed: int, *, limit: float = 3600.0, seeds: int = 3, scatter: float = 1.0) -> Runs:
    """Solving times of four solvers on 30 instances from seconds to days, cut at a limit."""
    rng = np.random.default_rng(seed)
    frame = grid(4, 30, seeds)
    log = rng.normal(5.5, 2, 30)[frame["task"]] + 0.3 * code(frame) + rng.normal(0, scatter, len(frame))
    return Runs(frame.assign(runtime=np.minimum(np.exp(log), limit)), score="runtime", direction="minimize", **ROLES)


def accuracies(seed: int, *, unit: float = 1.0) -> Runs:
    rng = np.random.default_rng(seed)
    frame = grid(4, 10, 10)
    logit = rng.normal(2, 0.1, 10)[frame["task"]] + 0.1 * code(frame) + rng.normal(0, 0.15, len(frame))
    return Runs(frame.assign(accuracy=unit / (1 + np.exp(-logit))), score="accuracy", direction="maximize", **ROLES)


def returns(seed: int, *, decades: float = 5.0) -> Runs:
    """Returns of six agents on 20 games whose scores are in units of their own; s0 is ahead by half a unit."""
    rng = np.random.default_rng(seed)
    frame = grid(6, 20, 5)
    y = rng.normal(0, 1, 20)[frame["task"]] + 0.5 * (frame["tool"] == "s0") + rng.normal(0, 0.5, len(frame))
    frame["ret"] = y * 10.0 ** rng.uniform(0, decades, 20)[frame["task"]]
    return Runs(frame, score="ret", direction="maximize", **ROLES)


def solved(seed: int) -> Runs:
    """How many of a handful of tasks were solved: small counts."""
    rng = np.random.default_rng(seed)
    frame = grid(4, 10, 5)
    return Runs(frame.assign(wins=rng.poisson(2 + code(frame))), score="wins", direction="maximize", **ROLES)


def losses(seed: int) -> Runs:
    rng = np.random.default_rng(seed)
    frame = grid(4, 10, 5)
    return Runs(frame.assign(loss=rng.normal(0, 1, len(frame))), score="loss", direction="minimize", **ROLES)


def kinds_of(found: RunsCheck) -> list[tuple[str, str]]:
    return sorted({(finding.severity, finding.kind) for finding in found.findings})


SCALE, CAP, TWO = ("warning", "score_scale"), ("warning", "capped_scores"), ("note", "two_values")
TABLES: dict[str, tuple[Callable[[int], Runs], str, list[tuple[str, str]]]] = {
    "right or wrong": (answers, "two-valued", [TWO]),
    "right or wrong, sampled": (lambda s: answers(s, samples=5), "two-valued", [TWO]),
    "times with a limit": (runtimes, "capped", [CAP, SCALE]),
    "one time each": (lambda s: runtimes(s, seeds=1), "capped", [CAP, SCALE]),
    "times without a limit": (lambda s: runtimes(s, limit=np.inf), "positive", [SCALE]),
    "accuracies": (accuracies, "proportion", []),
    "percentages": (lambda s: accuracies(s, unit=100.0), "percent", []),
    "returns": (returns, "general", [SCALE]),
    "returns of one unit": (lambda s: returns(s, decades=0), "general", []),
    "ranks": (lambda s: returns(s).normalize("rank"), "ranks", []),
    "ranks of two": (lambda s: returns(s).filter(tool=["s0", "s1"], seed=0).normalize("rank"), "ranks", []),
    "min-max": (lambda s: returns(s).normalize("minmax"), "min-max", []),
    "regret over the range": (lambda s: returns(s).normalize("normalized_regret"), "min-max", []),
    "counts": (solved, "count", []),
    "losses": (losses, "general", []),
}


@pytest.mark.daily(7)
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("seed", first(SEEDS))
def test_every_kind_gets_its_own_advice_and_no_other(name: str, seed: int) -> None:
    make, kind, findings = TABLES[name]
    found = make(seed).check(rules_only=True)
    assert (found.kind.kind, kinds_of(found)) == (kind, findings), found.summary()


def test_right_or_wrong_answers_get_none_of_the_advice_for_measurements() -> None:
    for seed in SEEDS:
        found = answers(seed).check(rules_only=True).findings
        text = " ".join(f"{finding.message} {finding.advice}" for finding in found)
        for phrase in ("leave it out", "log", "rank", "normalize", "cap", "ties", "constant"):
            assert phrase not in text, text
    found = answers(0).check(rules_only=True)
    (finding,) = found.findings
    table = answers(0).to_frame()
    share = 100 * table["score"].mean()
    assert finding.message == (
        f"Scores are 0 or 1; {share:.3g} % are 1. A difference of means is a difference of proportions, paired by "
        "'task'."
    )
    assert finding.advice.startswith("Keep every 'task', also those on which all algorithms agree")
    assert finding.advice.endswith(
        "lmemtest.evaluate(table, model='tool', task=..., item=..., score='score', method='auto')."
    )
    findings = Runs(table, score="score", direction="maximize", algorithm="tool").check(rules_only=True).findings
    alone = next(f for f in findings if f.kind == "two_values")
    assert "not paired" in alone.message
    assert "Name the column of the items" in alone.advice


def test_a_model_without_a_single_right_answer_is_named() -> None:
    table = answers(0).to_frame().assign(score=lambda t: t["score"].where(t["tool"] != "s2", 0))
    warning = Runs(table, score="score", direction="maximize", **ROLES).check(rules_only=True).problems
    assert [(f.kind, f.algorithm, f.message) for f in warning] == [
        ("constant_scores", "s2", "All 200 scores of 's2' are 0.")
    ]


def test_two_values_need_not_be_0_and_1_but_must_be_answers() -> None:
    table = answers(0, samples=3).to_frame()
    other = Runs(
        table.assign(score=np.where(table["score"] == 1, 5.0, -5.0)), score="score", direction="maximize", **ROLES
    )
    assert other.check(rules_only=True).kind.kind == "two-valued"
    pooled = Runs(table, score="score", direction="maximize", algorithm="tool", benchmark="task")  # without seeds
    assert pooled.check(rules_only=True).kind.kind == "two-valued"
    fixed = table.assign(score=(table["tool"] == "s0") * 1.0)  # two constants
    assert Runs(fixed, score="score", direction="maximize", **ROLES).check(rules_only=True).kind.kind != "two-valued"
    half = table.assign(score=table["score"].where(table["seed"] != 0, 0.5))
    assert Runs(half, score="score", direction="maximize", **ROLES).check(rules_only=True).kind.kind == "proportion"


def test_times_at_a_limit_are_censored_and_counted_by_algorithm() -> None:
    runs = runtimes(1)
    table = runs.to_frame()
    share = (table["runtime"] == 3600).groupby(table["tool"]).mean().sort_values(ascending=False)
    finding = next(f for f in runs.check(rules_only=True).findings if f.kind == "capped_scores")
    assert finding.count == (table["runtime"] == 3600).sum()
    assert f"By algorithm: {share.index[0]} {100 * share.iloc[0]:.3g} %, " in finding.message
    for word in ("censored", "timeout", "lower bounds"):
        assert word in finding.message
    for word in ("PAR2", "PAR10", "7,200", "36,000", "df.loc[df['runtime'] >= 3600, 'runtime'] = 36000"):
        assert word in finding.advice
    with on_command_line():
        advice = next(f for f in runs.check(rules_only=True).findings if f.kind == "capped_scores").advice
    assert "in the column 'runtime' of the file" in advice
    assert "df." not in advice


@pytest.mark.parametrize("penalty", [2.0, 10.0])
def test_following_the_advice_on_a_limit_settles_it(penalty: float) -> None:
    for seed in SEEDS:
        table = runtimes(seed).to_frame()
        table.loc[table["runtime"] >= 3600, "runtime"] = 3600 * penalty
        found = Runs(table, score="runtime", direction="minimize", **ROLES).check(rules_only=True)
        assert found.kind.penalised
        assert [f.severity for f in found.findings if f.kind == "penalised_scores"] == ["note"]
        assert "capped_scores" not in {f.kind for f in found.findings}


def test_the_penalty_of_a_logarithm_is_that_of_the_time() -> None:
    table = runtimes(0).to_frame()
    stopped = Runs(table, score="runtime", direction="minimize", **ROLES).normalize("log").check(rules_only=True)
    advice = next(finding.advice for finding in stopped.findings if finding.kind == "capped_scores")
    assert f"write {math.log(7200):.6g} or {math.log(36000):.6g} for {math.log(3600):.4g}" in advice
    table.loc[table["runtime"] >= 3600, "runtime"] = 7200
    penalised = Runs(table, score="runtime", direction="minimize", **ROLES).normalize("log").check(rules_only=True)
    assert penalised.kind.penalised
    assert "capped_scores" not in {finding.kind for finding in penalised.findings}


def test_a_limit_is_more_than_a_repeated_maximum() -> None:
    for seed in SEEDS:
        table = runtimes(seed, limit=np.inf).to_frame()
        top = table["runtime"].nlargest(2).index
        twice = table.assign(runtime=table["runtime"].where(~table.index.isin(top), table["runtime"].max()))
        rounded = table.assign(runtime=table["runtime"].round(-2))
        whole = table.assign(runtime=np.ceil(np.log(table["runtime"]).clip(lower=0)))
        one = runtimes(seed).to_frame()
        one.loc[(one["task"] != 0) & (one["runtime"] == 3600), "runtime"] = 1.0 + one["seed"]
        for other in (twice, rounded, whole, one):
            assert (
                Runs(other, score="runtime", direction="minimize", **ROLES).check(rules_only=True).kind.kind != "capped"
            )
    upward = Runs(runtimes(0).to_frame(), score="runtime", direction="maximize", **ROLES)
    assert upward.check(rules_only=True).kind.kind == "positive"  # a limit at the good end is a ceiling


def test_curves_that_start_at_a_guess_have_no_limit() -> None:
    frame = grid(3, 5, 4).merge(pd.DataFrame({"epoch": [1, 2, 3]}), how="cross")
    rng = np.random.default_rng(0)
    frame["loss"] = np.where(frame["epoch"] == 1, 90.0, 30.0 / frame["epoch"] + rng.random(len(frame)))
    runs = Runs(frame, score="loss", direction="minimize", budget="epoch", **ROLES)
    assert runs.check(rules_only=True).kind.kind == "general"


def test_scale_advice_names_the_ratio_before_and_after_as_measured() -> None:
    runs = returns(3)
    study = runs.study
    before = scale_ratio(spreads(study))
    found = dict(remedies(study, score_kind(study)))
    assert set(found) == {"minmax", "rank"}
    for method, ratio in found.items():
        sd = runs.normalize(method).check(rules_only=True).scales["residual_sd"]
        assert ratio == pytest.approx(sd.max() / sd.min(), rel=1e-9)
    (finding,) = runs.check(rules_only=True).findings
    assert f"after runs.normalize('minmax') ({found['minmax']:.1f}-fold: " in finding.advice
    assert f"instead of {before:,.0f}-fold" in finding.advice
    with on_command_line():
        advice = runs.check(rules_only=True).findings[0].advice
    assert "after --normalize minmax (" in advice
    assert "runs." not in advice


def test_the_regret_leaves_the_scale_as_it_was() -> None:
    runs = returns(3)
    assert runs.normalize("regret").check(rules_only=True).scale_ratio == pytest.approx(
        runs.check(rules_only=True).scale_ratio, rel=1e-9
    )
    assert "regret" not in runs.check(rules_only=True).findings[0].advice
    assert runs.normalize().check(rules_only=True).scale_ratio < 3


def test_remedies_are_measured_on_rows_where_seeds_are_not_named() -> None:
    named = returns(4)
    unnamed = Runs(named.to_frame(), score="ret", direction="maximize", algorithm="tool", benchmark="task")
    want, got = (dict(remedies(p, score_kind(p))) for p in (named.study, unnamed.study))
    assert want == pytest.approx(got, rel=1e-9)


def test_logarithms_are_advised_for_times_and_not_for_accuracies_or_negative_scores() -> None:
    assert "'log'" in next(f for f in runtimes(0, limit=np.inf).check(rules_only=True).findings).advice
    assert "'log'" not in next(f for f in returns(0).check(rules_only=True).findings).advice
    table = accuracies(0).to_frame()
    table["accuracy"] = np.where(table["task"] == 0, 0.5 + (table["accuracy"] - 0.5) / 50, table["accuracy"])
    (finding,) = Runs(table, score="accuracy", direction="maximize", **ROLES).check(rules_only=True).findings
    assert finding.kind == "score_scale"
    assert "'log'" not in finding.advice


def test_where_nothing_brings_scales_together_the_noise_differs() -> None:
    """Advantages grow with the noise, and with one outlier by benchmark neither range nor rank helps."""
    rng = np.random.default_rng(0)
    frame = grid(2, 6, 20)
    far = np.where(frame["task"] < 3, 1000.0, 0.0) * code(frame)  # ranks and ranges see the two tools only
    runs = Runs(frame.assign(loss=far + rng.normal(0, np.where(frame["task"] == 5, 30.0, 1.0))), score="loss",
                direction="minimize", **ROLES)  # fmt: skip
    study = runs.study
    found = remedies(study, score_kind(study))
    before = scale_ratio(spreads(study))
    assert all(ratio <= before / 2 for _, ratio in found)
    text = runs.check(rules_only=True).findings[0].advice
    assert ("dispersion='task'" in text) == (not found)


def test_fractions_among_percentages_are_the_cause_and_the_scale_is_not_named_again() -> None:
    table = accuracies(0).to_frame()
    table["accuracy"] *= np.where(table["task"] < 3, 1.0, 100.0)
    (finding,) = Runs(table, score="accuracy", direction="maximize", **ROLES).check(rules_only=True).findings
    assert finding.kind == "mixed_units"
    assert finding.message == (
        "'accuracy' is a fraction on '0', '1', '2' (at most 1) and a percentage on '3', '4', '5', ... (7 in all)."
    )
    errors = Runs(table.rename(columns={"accuracy": "error"}), score="error", direction="minimize", **ROLES)
    assert "mixed_units" not in {f.kind for f in errors.check(rules_only=True).findings}


def test_folds_are_not_independent_runs() -> None:
    table = accuracies(0).to_frame().rename(columns={"seed": "fold"})
    roles = {**ROLES, "seed": "fold", "score": "accuracy", "direction": "maximize"}
    (note,) = Runs(table, **roles).check(rules_only=True).findings
    assert (note.severity, note.kind, note.count) == ("note", "folds", 10)
    assert "not independent runs" in note.message
    assert "(1 | benchmark:algorithm)" in note.message
    (warning,) = Runs(table[table["task"] == 0], **roles).check(rules_only=True).findings
    assert (warning.severity, warning.kind) == ("warning", "folds")
    assert "corrected resampled t-test" in warning.advice
    assert not accuracies(0).check(rules_only=True).findings


def test_the_rate_that_the_warning_on_folds_names() -> None:
    """Ten splits that test on a tenth correlate by 1/10 (Nadeau & Bengio 2003): t is 1.45 times too large."""
    from scipy.stats import t

    k, correlation = 10, 1 / 10
    inflation = np.sqrt(1 + k * correlation / (1 - correlation))
    assert 2 * t.sf(t.ppf(0.975, k - 1) / inflation, k - 1) == pytest.approx(0.15, abs=0.005)


@pytest.mark.parametrize(
    ("name", "what", "is_one"),
    [
        ("runtime", "time", True), ("cpu_time", "time", True), ("PAR10", "time", True), ("wallTime", "time", True),
        ("timestep_return", "time", False), ("parameter", "time", False), ("loss", "time", False),
        ("cv_fold", "fold", True), ("Fold", "fold", True), ("cvSplit", "fold", True), ("manifold", "fold", False),
        (None, "fold", False), ("top1", "share", True), ("val_f1", "share", True), ("account", "share", False),
    ],
)  # fmt: skip
def test_names_are_read_by_words(name: str | None, what: Any, is_one: bool) -> None:
    assert looks_like(name, what) == is_one


@pytest.mark.parametrize("role", ["benchmark", "seed"])
def test_a_constant_benchmark_is_kept(role: str) -> None:
    table = losses(0).to_frame()
    table.loc[table["task"] == 0, "loss"] = 0.25
    roles = ROLES if role == "benchmark" else {**ROLES, "seed": None}
    constant = Runs(table, score="loss", direction="minimize", **roles).check(rules_only=True).findings
    advice = next(f.advice for f in constant if f.kind == "constant_scores")
    assert "keep the benchmark" in advice
    assert "leave" not in advice


LOGGED = parse_formula("log(runtime) ~ tool + (1 | task)")


def test_scales_of_a_model_of_logarithms_are_those_of_the_logarithms() -> None:
    """Times whose scatter is the same factor everywhere: raw 300-fold, and no difference once they are logged."""
    runs = runtimes(0, limit=np.inf, scatter=0.3)
    raw, logged = check_rules(runs), check_rules(runs, LOGGED)
    assert raw.scale_ratio > 30
    assert raw.scales_differ
    sd = runs.normalize("log").check(rules_only=True).scales["residual_sd"]
    assert logged.scale_ratio == pytest.approx(sd.max() / sd.min(), rel=1e-9)
    assert not logged.scales_differ
    frame = runs.to_frame()
    frame.loc[frame["task"] == 1, "runtime"] **= 9
    few = {"score": "runtime", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
    for roles in ({**ROLES, **few}, few):  # with seeds and without
        found = check_rules(Runs(frame, **roles), LOGGED)
        finding = next(f for f in found.findings if f.kind == "score_scale")
        assert finding.message.startswith("Values of log(runtime) scatter ")
        assert "'log'" not in finding.advice
    zero = Runs(frame.assign(runtime=frame["runtime"].where(frame.index != 5, 0.0)), **{**ROLES, **few})
    assert np.isfinite(check_rules(zero, LOGGED).scale_ratio)


def python_advice(text: str) -> list[str]:
    """Calls and arguments of Python in a text."""
    words = ("Runs(", "to_frame()", "df.", "dispersion=", "analyze(", "k=", "by=")
    return [*re.findall(r"\bruns\.\w+", text), *(word for word in words if word in text)]


@pytest.mark.daily(4)
@pytest.mark.parametrize("name", TABLES)
def test_advice_on_the_command_line_is_no_python(name: str) -> None:
    table = TABLES[name][0](0)
    frame = table.to_frame()
    worse = pd.concat([frame, frame[:9]], ignore_index=True)  # duplicates in many places
    worse[table.score] = worse[table.score].astype(float)
    worse.loc[[5, 17, 30], table.score] = np.nan
    broken = Runs(worse, **table.roles())
    with on_command_line():
        assert python_advice(table.check(rules_only=True).summary()) == []
        assert python_advice(broken.check(rules_only=True).summary()) == []
        with pytest.raises(DataError) as error:
            broken.normalize("minmax", name="other")
        assert python_advice(str(error.value)) == []
        assert "--drop-missing" in str(error.value)
