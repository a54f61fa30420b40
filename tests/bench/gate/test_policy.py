"""Policies: what is refused, what their tiers decide, and bars against the binomial distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import refusal, refuses
from scipy import stats
from study import table_of_scores

import lmemtest as lt
from lmemtest.bench.gate.decision import CANNOT_SAY, NOT_WORSE, WORSE
from lmemtest.bench.gate.policy import ADVISORY, CRITICAL, SUPPORTING, read_policy
from lmemtest.bench.gate.thresholds import runs_needed
from lmemtest.bench.gate.tiers import over_tiers
from lmemtest.core.proportions import bounded_mean_interval, bounded_mean_test
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

ROLES: dict[str, Any] = {"benchmark": "task", "seed": "seed"}
MARGIN = {"margin": 0.01}
EXAMPLE = """
alpha = 0.05
required = ["t0", "t1"]
supporting_failures = 2

[critical.accuracy]
margin = "2 %"
bar = 0.5
share = "60 %"

[supporting]
f1 = {margin = 0.02}
recall = {margin = 0.02}

[advisory.loss]
margin = 0.01
"""


def versions(
    losses: dict[str, float], *, n_tasks: int = 10, n_seeds: int = 3, spread: float = 0.01
) -> list[pd.DataFrame]:
    """The new and the old version, the new one worse by these losses."""
    rng = np.random.default_rng(3)
    keys = pd.MultiIndex.from_product([[f"t{i}" for i in range(n_tasks)], range(n_seeds)], names=["task", "seed"])
    level = np.repeat(rng.uniform(0.6, 0.9, n_tasks), n_seeds)
    tables = []
    for times in (1.0, 0.0):
        table = keys.to_frame(index=False)
        for name, loss in losses.items():
            table[name] = level + times * (loss if name == "loss" else -loss) + rng.normal(0.0, spread, len(keys))
        tables.append(table)
    return tables


def gate(policy: Any, losses: dict[str, float], **options: Any) -> Any:
    return lt.gate(*versions(losses, **options), policy=policy, **ROLES)


# ------------------------------------------------------------------------------------------------- what is read


def test_a_file_and_a_mapping_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "gate.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    policy = read_policy(path)
    assert [(check["tier"], check["metric"]) for check in policy.checks] == [
        *[(CRITICAL, "accuracy")] * 2,
        *[(SUPPORTING, "f1"), (SUPPORTING, "recall"), (ADVISORY, "loss")],
    ]
    assert policy.checks[0]["margin"] == (0.02, True)
    assert (policy.checks[1]["bar"], policy.checks[1]["share"]) == (0.5, 0.6)
    assert (policy.where, policy.required, policy.supporting_failures) == ("gate.toml", ("t0", "t1"), 2)
    assert [policy.level_of(tier) for tier in (CRITICAL, SUPPORTING, ADVISORY)] == [0.05, 0.025, 0.05]
    losses = dict.fromkeys(("accuracy", "f1", "recall", "loss"), 0.0)
    from_file = gate(str(path), losses)
    from_mapping = gate(
        {
            "alpha": 0.05,
            "required": ["t0", "t1"],
            "supporting_failures": "60 %",
            "critical": {"accuracy": {"margin": "2%", "bar": 0.5, "share": 0.6}},
            "supporting": {"f1": {"margin": 0.02}, "recall": {"margin": 0.02}},
            "advisory": {"loss": {"margin": 0.01}},
        },
        losses,
    )
    pd.testing.assert_frame_equal(from_file.metrics, from_mapping.metrics)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"critcal": {}}, "policy: the key 'critcal' is unknown. Keys: .* Did you mean 'critical'?"),
        ({"critical": {"f1": {"margn": 1}}},
         r"\[critical.f1\]: the key 'margn' is unknown. Keys: margin, .* 'margin'?"),
        ({"critical": {"f1": 0.1}}, r"\[critical.f1\] must be a section with margin, or with bar and share, got 0.1"),
        ({"critical": 3}, r"the key 'critical' must have a section for each metric, \[critical.accuracy\], got 3"),
        ({"critical": {"f1": {}}}, r"\[critical.f1\] is empty. Write margin = '2 %'"),
        ({"critical": {"f1": {"margin": "-2 %"}}},
         r"\[critical.f1\] the key 'margin' must be a positive .* got '-2 %'"),
        ({"critical": {"f1": {"margin": True}}}, "must be a positive number in the unit of the score, .* got True"),
        ({"critical": {"f1": {"bar": 1}}}, r"\[critical.f1\] has bar = 1 without share"),
        ({"critical": {"f1": {"share": 0.9}}}, r"\[critical.f1\] has share = 0.9 without bar"),
        ({"critical": {"f1": {"bar": "x", "share": 0.9}}}, "the key 'bar' must be a finite number, got 'x'"),
        ({"critical": {"f1": {"bar": 1, "share": "120 %"}}},
         "the key 'share' must be a number between 0 and 1 .*'120 %'"),
        ({"critical": {"f1": {"bar": 1, "share": 90}}}, "the key 'share' must be a number between 0 and 1 .*got 90"),
        ({"advisory": {"f1": MARGIN}},
         "there must be a critical or a supporting check, because nothing else can block"),
        ({"supporting": {"f1": MARGIN}}, "the key 'supporting_failures' says how many .* is missing, and there are 1."),
        ({"critical": {"f1": MARGIN}, "supporting_failures": 1}, "there is none, got 1"),
        ({"supporting": {"f1": MARGIN}, "supporting_failures": 2}, "must be a whole number from 1 to 1, .* got 2"),
        ({"supporting": {"f1": MARGIN}, "supporting_failures": 0}, "must be a number between 0 and 1|from 1 to 1"),
        ({"critical": {"f1": MARGIN}, "alpha": "5 %"}, "the key 'alpha' must be a number between 0 and 1 .* got '5 %'"),
        ({"critical": {"f1": MARGIN}, "tasks": "all"}, "the key 'tasks' must be 'like these' or 'these', got 'all'"),
        ({"critical": {"f1": MARGIN}, "allow": ["copies"]}, "the key 'allow' must be 'missing' or 'identical'"),
        ({"critical": {"f1": MARGIN}, "missing": "warn"}, "the key 'missing' must be 'insufficient' or 'error'"),
        ({"critical": {"f1": MARGIN}, "required": "t1"}, "the key 'required' must be a list of tasks"),
        ({"critical": {"f1": MARGIN}, "direction": {"f2": "max"}},
         "direction': the key 'f2' is unknown. Metrics with a check: f1."),
        ({"critical": {"f1": MARGIN}, "direction": "up"}, "the key 'direction' must be 'minimize' or 'maximize'"),
    ],
)  # fmt: skip
def test_a_wrong_policy_is_refused_by_key_rule_and_value(policy: Any, message: str) -> None:
    refuses(ArgumentError, message, read_policy, policy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[critical.f1]\nmargin = 2 %", "gate.toml is not written in TOML: .*line 2.*Texts need quotation marks"),
        ("[critical.f1]\nmargin = 1\nmargin = '2 %'", "gate.toml is not written in TOML"),
        ("x = " + "[" * 100_000, "gate.toml is not written in TOML"),
        ("[critical.f1]\nmargin = inf", r"gate.toml: \[critical.f1\] the key 'margin' must be .* got inf"),
        (b"\xff\xfe", "policy must be the path of a TOML file that can be read, got .*gate.toml"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: Any, message: str) -> None:
    path = tmp_path / "gate.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    refuses(ArgumentError, message, read_policy, path)
    assert "No such file" in refusal(lambda: read_policy(tmp_path / "gone.toml"))


def test_what_the_policy_says_is_no_argument_and_what_the_tables_lack_is_named() -> None:
    policy = {"critical": {"accuracy": MARGIN}}
    tables = versions({"accuracy": 0.0})
    for argument in (
        {"margin": 0.1},
        {"alpha": 0.05},
        {"power": 0.8},
        {"allow": ()},
        {"score": "accuracy"},
        {"direction": "maximize"},
    ):
        name = next(iter(argument))
        words = refusal(lambda: lt.gate(*tables, policy=policy, **argument, **ROLES), ArgumentError)  # noqa: B023
        assert words == f"{name} must be left out with policy: policy says it."
    assert refusal(lambda: lt.gate(*tables, **ROLES)).startswith("margin must be given")
    other = {"critical": {"acuracy": MARGIN}}
    words = refusal(lambda: lt.gate(*tables, policy=other, **ROLES), UnknownColumnError)
    assert words.startswith("policy (new) names the column 'acuracy', which is not in the data.")
    assert words.endswith("Did you mean 'accuracy'?")
    long = [t.rename(columns={"accuracy": "value"}).assign(name="accuracy") for t in tables]
    words = refusal(lambda: lt.gate(*long, policy=other, score="value", metric="name", **ROLES))
    assert words == "policy names 'acuracy', which is no metric. Metrics: accuracy. Did you mean 'accuracy'?"
    assert lt.gate(*long, policy=policy, score="value", metric="name", **ROLES).n_tasks == 10


# ------------------------------------------------------------------------------------------------ what tiers decide


@pytest.mark.parametrize(
    ("critical", "supporting", "failures", "decision"),
    [
        ("p", "", 1, NOT_WORSE),
        ("pf", "p", 1, WORSE),
        ("pi", "", 1, CANNOT_SAY),
        ("p", "pppf", 2, NOT_WORSE),
        ("p", "ppff", 2, WORSE),
        ("p", "ppfi", 2, CANNOT_SAY),
        ("p", "pppi", 2, NOT_WORSE),
        ("p", "ppp", 1, NOT_WORSE),
        ("p", "ppi", 1, CANNOT_SAY),
        ("i", "ff", 2, WORSE),
        ("", "fi", 2, CANNOT_SAY),
    ],
)
def test_tiers_decide_by_their_rules(critical: str, supporting: str, failures: int, decision: str) -> None:
    codes = {"p": NOT_WORSE, "f": WORSE, "i": CANNOT_SAY}
    tiers = [CRITICAL] * len(critical) + [SUPPORTING] * len(supporting) + [ADVISORY] * 2
    assert over_tiers([codes[c] for c in f"{critical}{supporting}fi"], tiers, failures) == decision


def test_critical_checks_are_those_of_margins_and_advisory_ones_change_nothing() -> None:
    losses = {"accuracy": 0.012, "f1": 0.0, "loss": 0.05}
    tables = versions(losses)
    margins = {"accuracy": 0.01, "f1": "2 %"}
    plain = lt.gate(*tables, margin=margins, **ROLES)
    critical = {name: {"margin": margin} for name, margin in margins.items()}
    for advisory in ({}, {"advisory": {"loss": MARGIN}}):
        found = lt.gate(*tables, policy={"critical": critical, **advisory}, **ROLES)
        pd.testing.assert_frame_equal(found.metrics[plain.metrics.columns[:-1]].iloc[:2], plain.metrics.iloc[:, :-1])
        assert found.exit_code == plain.exit_code == 2
    assert found.metrics["verdict"].tolist() == ["insufficient", "pass", "fail"]
    assert found.sentences()[0] == "Insufficient: these runs do not settle accuracy (critical)."
    assert found.sentences()[3].startswith("Advisory, loss: difference -0.0")
    blocking = lt.gate(*tables, policy={"critical": {**critical, "loss": MARGIN}}, **ROLES)
    assert (blocking.decision, blocking.exit_code) == ("fail", 1)
    assert blocking.sentences()[0] == "Fail: loss (critical)."
    assert blocking.metrics["p_worse"].iloc[2] == pytest.approx(3 * found.metrics["p_worse"].iloc[2])


def test_supporting_checks_pass_at_the_level_over_the_failures_that_block() -> None:
    losses = {"accuracy": 0.0, "f1": 0.0, "recall": 0.0}
    section = dict.fromkeys(losses, MARGIN)
    found = gate({"supporting": section, "supporting_failures": 2}, losses)
    row, plain = (
        found.metrics.iloc[0],
        lt.gate(*versions(losses), margin=dict.fromkeys(losses, 0.01), alpha=0.025, **ROLES).metrics.iloc[0],
    )
    assert [row["ci_low"], row["level"]] == pytest.approx([plain["ci_low"], 0.025])
    at = float(row["p_not_worse"])
    for alpha, verdict in ((1.98 * at, "insufficient"), (2.02 * at, "pass")):
        again = gate({"supporting": section, "supporting_failures": 2, "alpha": alpha}, losses)
        assert again.metrics["verdict"].iloc[0] == verdict
        assert (again.metrics["bound"].iloc[0] > again.metrics["limit"].iloc[0]) == (verdict == "pass")


def test_required_tasks_hold_it_back_or_are_an_error() -> None:
    policy = {"critical": {"accuracy": {"margin": 0.05}}, "required": ["t1", "t10", 7], "allow": ["missing"]}
    found = gate(policy, {"accuracy": 0.0})
    assert (found.decision, found.exit_code, found.absent) == ("insufficient", 2, ("t10", "7"))
    assert found.sentences()[0] == "Insufficient: scores are missing."
    assert "Required, without scores of both versions: t10 and 7. Run them." in found.sentences()
    assert gate({**policy, "required": ["t1"]}, {"accuracy": 0.0}).decision == "pass"
    words = refusal(lambda: gate({**policy, "missing": "error"}, {"accuracy": 0.0}), DataError)
    assert words.startswith("policy requires t10 and 7, without scores of both versions. Did you mean 't1'? Run what")
    new, old = versions({"accuracy": 0.0})
    lacking = {"critical": {"accuracy": {"margin": 0.05}}}
    found = lt.gate(new[new["task"] != "t3"], old, policy=lacking, **ROLES)
    assert found.decision == "insufficient"
    assert found.sentences()[-1].endswith("Run them, or decide without them: allow = ['missing'] in policy.")


def test_runs_of_two_algorithms_take_a_policy_of_their_score() -> None:
    new, old = versions({"accuracy": 0.0})
    both = pd.concat([new.assign(tool="v2"), old.assign(tool="v1")])
    runs = lt.Runs(both, score="accuracy", direction="maximize", algorithm="tool", benchmark="task", seed="seed")
    policy = {"critical": {"accuracy": {"margin": "2 %", "bar": 0.5, "share": 0.6}}}
    found = lt.gate(runs, "v1", policy=policy)
    want = lt.gate(new, old, policy=policy, **ROLES)
    pd.testing.assert_frame_equal(found.metrics, want.metrics, rtol=1e-6)
    assert "another direction" in refusal(lambda: lt.gate(runs, "v1", policy={**policy, "direction": "minimize"}))
    assert "which is no metric" in refusal(lambda: lt.gate(runs, "v1", policy={"critical": {"f1": MARGIN}}))


# --------------------------------------------------------------------------------------------------------- bars


def bar(good: list[list[float]], *, share: float = 0.9, tasks: str = "these", **settings: Any) -> Any:
    """The check of a bar of 0.5 on these scores by task and seed."""
    new, old = (table_of_scores(np.array([scores]), "tool task seed", score="accuracy") for scores in (good, good))
    roles = {"benchmark": "task", "seed": "seed", "ignore": "tool"}
    policy = {"critical": {"accuracy": {"bar": 0.5, "share": share}}, "tasks": tasks, **settings}
    return lt.gate(new, old, policy=policy, **roles)


@pytest.mark.daily(2)
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("shape", [(8, 5, "these"), (40, 1, "like these")])
def test_a_bar_is_the_exact_binomial_test_of_runs(direction: str, shape: tuple[int, int, str]) -> None:
    n_tasks, n_seeds, tasks = shape
    for k in (40, 39, 36, 24):
        good = np.where(np.arange(40) < k, 0.5, 0.4).reshape(n_tasks, n_seeds)  # a score at the bar reaches it
        scores = good if direction == "maximize" else 1.0 - good
        found = bar(scores.tolist(), tasks=tasks, direction=direction)
        row = found.metrics.iloc[0]
        passes, fails = (stats.binomtest(k, 40, 0.9, alternative=side) for side in ("greater", "less"))
        assert [row["new"], row["n"]] == [k / 40, 40]
        assert [row["p_not_worse"], row["p_worse"]] == pytest.approx([passes.pvalue, fails.pvalue])
        assert row["ci_low"] == pytest.approx(passes.proportion_ci(0.95, method="exact").low)
        assert row["ci_high"] == pytest.approx(fails.proportion_ci(0.95, method="exact").high)
        assert found.decision == {40: "pass", 24: "fail"}.get(k, "insufficient")
        assert row["bound"] == row["ci_low"]


def test_runs_of_one_task_are_no_independent_trials_of_tasks_like_these() -> None:
    good = np.ones((12, 10))
    good[0] = 0.0
    row = bar(good.tolist(), tasks="like these", share=0.7).metrics.iloc[0]
    limits = bounded_mean_interval(good.mean(axis=1), 0.9)
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(list(limits), rel=1e-9)
    assert (row["unit"], row["n"]) == ("task", 12)
    assert row["p_not_worse"] == pytest.approx(stats.binomtest(11, 12, 0.7, alternative="greater").pvalue, abs=1e-8)
    assert bar([[1.0, 0.0]], tasks="like these").metrics["reason"].iloc[0].startswith("one task says nothing")


def test_p_values_of_a_bounded_mean_are_where_its_limits_are() -> None:
    for k, n, mean in ((0, 7, 0.3), (7, 7, 0.8), (55, 60, 0.85), (280, 300, 0.9)):
        p_values = bounded_mean_test(np.repeat([1.0, 0.0], [k, n - k]), mean)
        want = [stats.binomtest(k, n, mean, alternative=side).pvalue for side in ("greater", "less")]
        assert list(p_values) == pytest.approx(want, abs=1e-8)
    values = np.random.default_rng(1).beta(8, 2, 20)
    low, high = bounded_mean_interval(values, 0.9)
    assert bounded_mean_test(values, low)[0] == pytest.approx(0.05, abs=1e-7)
    assert bounded_mean_test(10.0 * values - 5.0, 10.0 * high - 5.0, low=-5.0, high=5.0)[1] == pytest.approx(
        0.05, abs=1e-7
    )


@pytest.mark.parametrize(("share", "truth"), [(0.9, 0.97), (0.5, 0.6), (0.9, 0.8)])
def test_the_number_of_runs_has_the_power_by_the_binomial_distribution(share: float, truth: float) -> None:
    def power(n: int) -> float:
        side = "greater" if truth > share else "less"
        significant = [stats.binomtest(k, n, share, alternative=side).pvalue <= 0.05 for k in range(n + 1)]
        return float(stats.binom.pmf(np.arange(n + 1), n, truth) @ significant)

    needed = runs_needed(30, share, truth, level=0.05, power=0.8)
    assert needed is not None
    assert power(needed - 1) < 0.8 <= power(needed)


def test_an_open_bar_says_how_many_runs_would_settle_it() -> None:
    good = np.ones((5, 8))
    good[0, 0] = 0.0
    found = bar(good.tolist())
    needed = runs_needed(40, 0.9, 39 / 40, level=0.05, power=0.8)
    assert found.metrics["n_needed"].iloc[0] == needed
    assert found.metrics["next_step"].iloc[0] == f"Run {needed - 40} further runs."
    assert found.sentences()[1] == (
        "Critical, accuracy: 97.5 % of 40 runs are at 0.5000 or more (limits 89 % and 99.9 %), 90 % required: neither "
        "shown nor excluded."
    )
    assert found.sentences()[-1].startswith(f"To settle it: {needed - 40} further runs, if shares are those seen here")
    assert bar([[np.nan, 1.0]]).metrics["reason"].iloc[0] == "missing or infinite scores, 1 of the new version"


def test_names_are_escaped_in_the_summary() -> None:
    name = "a|b<script>*"
    found = gate({"critical": {name: {"margin": 0.05}}, "direction": "maximize"}, {name: 0.0})
    assert f"| {name} |" not in found.to_markdown()
    assert r"a\|b&lt;script&gt;\*" in found.to_markdown()
    assert "<script>" not in found.to_html()
