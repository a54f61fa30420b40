"""inspect_ai and Optuna stop when the comparison is decided: which items count, what is refused, the packages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from refusals import refuses

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError

ITEMS = [f"i{k:02}" for k in range(40)]
BASELINE = {item: float(k % 3 == 0) for k, item in enumerate(ITEMS)}  # a third of them right


def started(items: list[str] = ITEMS, epochs: int = 1, **options: Any) -> lt.StopWhenDecided:
    stopping = lt.StopWhenDecided(BASELINE, **{"looks": 10, **options})
    asyncio.run(stopping.start_task(None, [SimpleNamespace(id=item) for item in items], epochs))
    return stopping


def complete(stopping: lt.StopWhenDecided, items: list[str], value: Any = "C", epoch: int = 1) -> None:
    score = {"match": SimpleNamespace(score=SimpleNamespace(value=value))}
    for item in items:
        asyncio.run(stopping.complete_sample(item, epoch, score))


def test_items_count_in_the_order_of_the_data_set() -> None:
    stopping = started()
    complete(stopping, ITEMS[1:15])
    assert stopping.found is None  # the first one still runs
    complete(stopping, ITEMS[:1], "I")
    assert stopping.found.sizes == (10,)
    row = stopping.found.to_frame().iloc[0]
    gain = [1.0 - BASELINE[item] - (1.0 if item == ITEMS[0] else 0.0) for item in ITEMS[:10]]
    assert abs(row["estimate"]) == pytest.approx(abs(sum(gain)) / 10)
    complete(stopping, ITEMS[15:])
    assert stopping.found.decision == "stop"
    assert asyncio.run(stopping.complete_task())["decision"] == "stop"


def test_all_epochs_of_an_item_are_needed() -> None:
    stopping = started(epochs=2)
    complete(stopping, ITEMS[:12])
    complete(stopping, ITEMS[:12])  # the same epoch again
    assert stopping.found is None
    assert asyncio.run(stopping.complete_task()) == {"looks": 0}
    complete(stopping, ITEMS[:12], 0.5, epoch=2)
    assert stopping.found.sizes == (10,)


def test_scores_that_are_no_numbers_and_items_without_a_baseline_are_refused() -> None:
    with pytest.raises(DataError, match=r"the score of 'i00' must be a number, or C, P, I or N, got 'yes, I think'"):
        complete(started(), ITEMS[:1], "yes, I think")
    for options, scores, known in (
        ({}, {}, "of which there are none: got None"),
        ({"scorer": "x"}, {"y": 1}, "'y': got 'x'"),
    ):
        stopping = lt.StopWhenDecided(BASELINE, looks=10, **options)
        with pytest.raises(DataError, match=f"scorer must be one of the evaluation's, {known}"):
            asyncio.run(stopping.complete_sample("i00", 1, scores))
    refuses(DataError, r"baseline has no score of j1", started, [*ITEMS, "j1"])


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (r"baseline must map ids of samples to finite scores, got \{'a': nan\}", {"baseline": {"a": float("nan")}}),
        (r"baseline must map ids of samples", {"baseline": 3}),
        (r"scorer must be the name of a scorer of the task, got 3", {"scorer": 3}),
        (r"looks must be a whole number of at least 1, got 0", {"looks": 0}),
        (r"looks must ascend, got 20, 10", {"looks": (20, 10)}),
        (r"alpha must be .* got 2", {"alpha": 2}),
        (r"spending must be 'obrien_fleming' or 'pocock', got 'x'", {"spending": "x"}),
    ],
)
def test_bad_arguments_are_refused(words: str, options: dict[str, Any]) -> None:
    refuses(ArgumentError, words, lt.StopWhenDecided, **{"baseline": BASELINE, "looks": 10, **options})


class Study:
    """What the callback asks of an Optuna study: trials with a benchmark and its loss each."""

    direction = SimpleNamespace(name="MINIMIZE")

    def __init__(self, losses: list[tuple[str, float]], state: str = "COMPLETE") -> None:
        self.stopped, self.trials = False, []
        for k, (name, loss) in enumerate(losses):
            self.trials.append(SimpleNamespace(number=k, state=SimpleNamespace(name=state), value=loss,
                                               params={"benchmark": name}, user_attrs={}))  # fmt: skip

    def get_trials(self, *, deepcopy: bool) -> list[Any]:
        assert not deepcopy
        return self.trials[::-1]

    def stop(self) -> None:
        self.stopped = True


def test_an_optuna_study_of_benchmarks_is_stopped_and_smaller_losses_are_better() -> None:
    stopping = lt.StopWhenDecided(BASELINE, looks=10)
    study = Study([(item, BASELINE[item] - 1.0 - 0.1 * (k % 2)) for k, item in enumerate(ITEMS[:15])])
    study.trials[9].state = SimpleNamespace(name="RUNNING")
    stopping(study, None)
    assert stopping.found is None  # those behind one that runs do not count
    study.trials[9].state = SimpleNamespace(name="COMPLETE")
    stopping(study, None)
    assert study.stopped
    assert stopping.found.schedule.maximum == len(BASELINE)
    assert stopping.found.sentences()[:2] == ("Stop: the pair is decided.", "this one is better than the baseline.")


@pytest.mark.parametrize("names", [["i00", "i00"], ["x"], [None]], ids=str)
def test_trials_that_are_no_benchmarks_are_refused(names: list[Any]) -> None:
    with pytest.raises(DataError, match=r"trials must run on one benchmark of the baseline each, once, .* got "):
        lt.StopWhenDecided(BASELINE, looks=10)(Study([(name, 1.0) for name in names]), None)


@pytest.mark.level(2)
def test_optuna_stops() -> None:
    optuna = pytest.importorskip("optuna", reason="not of the tests' packages")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    stopping = lt.StopWhenDecided(BASELINE, looks=10)
    study = optuna.create_study(sampler=optuna.samplers.GridSampler({"benchmark": ITEMS}, seed=1))

    def loss(trial: Any) -> float:
        return BASELINE[trial.suggest_categorical("benchmark", ITEMS)] - 1.0 - 0.1 * (trial.number % 3)

    study.optimize(loss, callbacks=[stopping])
    assert stopping.found.decision == "stop"
    assert stopping.found.schedule.direction == "minimize"
    assert len(study.trials) == stopping.found.sizes[-1] < len(ITEMS)


@pytest.mark.level(2)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # streams that the package leaves open
def test_the_package_stops(tmp_path: Path) -> None:
    inspect_ai = pytest.importorskip("inspect_ai", reason="not of the tests' packages")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    @solver
    def answered() -> Any:  # without a model, which would fetch its tokens
        async def solve(state: Any, generate: Any) -> Any:  # noqa: ARG001
            state.output = ModelOutput.from_content("mockllm/model", "yes")
            return state

        return solve

    stopping = lt.StopWhenDecided(BASELINE, looks=10)
    task = inspect_ai.Task(
        dataset=[Sample(id=item, input="?", target="yes") for item in ITEMS],
        solver=answered(), scorer=match(), early_stopping=stopping)  # fmt: skip
    log = inspect_ai.eval(task, model="mockllm/model", max_samples=1, log_dir=str(tmp_path), display="none")[0]
    assert stopping.found.decision == "stop"
    summary = log.results.early_stopping
    assert (summary.manager, summary.metadata["decision"]) == ("lmemtest", "stop")
    assert len(summary.early_stops) == len(ITEMS) - summary.metadata["items"] > 0
