"""What other tools write becomes runs whose roles, scores and notes are those of the tool."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from types import SimpleNamespace as Thing
from typing import Any

import numpy as np
import pandas as pd
import pytest
from importing import FILES, levels, logged_returns, scores, tracked
from refusals import refuses

import lmemtest as lt
from lmemtest.bench.data.recognised import recognised_file
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

# ------------------------------------------------------------------------------------------------------------- optuna


def study(*trials: tuple[str, Any], way: str = "MINIMIZE", sampler: Any = None, **user_attrs: Any) -> Any:
    """What a study of Optuna 5 shows of itself."""
    frozen = [
        Thing(number=i, state=Thing(name=state), values=None if value is None else np.atleast_1d(value).tolist())
        for i, (state, value) in enumerate(trials)
    ]
    ways = [Thing(name=name) for name in way.split()]
    return Thing(trials=frozen, directions=ways, study_name="TPE_iris_7", user_attrs=user_attrs, sampler=sampler)


class TPESampler:
    """Only its name counts."""


class RandomSampler:
    """Only its name counts."""


def done(*values: float) -> list[tuple[str, float]]:
    return [("COMPLETE", value) for value in values]


def test_optuna_tables_name_their_runs_by_their_files() -> None:
    runs = lt.importers.optuna(FILES / "optuna", names="{algorithm}_{seed}", direction="minimize")
    assert levels(runs) == {"algorithm": ("Random", "TPE"), "seed": (0, 1), "trial": tuple(range(1, 9))}
    # trials 4, 5, 7 and 8 were pruned: their value is a report on the way, such as 5.4061; trial 3 failed
    assert scores(runs, algorithm="Random", seed=0) == [2.2857, *[0.0231] * 7]
    assert (runs.score, runs.direction, runs.seed_shared) == ("value_best_so_far", "minimize", True)
    assert runs.notes[0] == (
        "4 Optuna studies: algorithm is in its name; seed is in its name; budget is the number of the trial, from 1; "
        "score is value; minimize."
    )
    single = lt.importers.optuna(FILES / "optuna", names="{algorithm}_{seed}", direction="minimize", best_so_far=False)
    assert np.isnan(scores(single, algorithm="Random", seed=0)).tolist() == [i in (2, 3, 4, 6, 7) for i in range(8)]
    assert runs.notes[1:3] == (
        "18 pruned trials: taken as without a value.",
        "2 failed trials: taken as without a value.",
    )


def test_optuna_studies_say_their_direction_sampler_and_attributes() -> None:
    first = study(*done(3, 1, 2), ("RUNNING", None), way="MAXIMIZE", sampler=TPESampler(), benchmark="iris", seed=7)
    second = study(("FAIL", None), *done(5, 4), way="MAXIMIZE", sampler=RandomSampler(), benchmark="iris", seed=7)
    runs = lt.importers.optuna([first, second])
    assert levels(runs) == {"algorithm": ("Random", "TPE"), "benchmark": ("iris",), "seed": (7,), "trial": (1, 2, 3)}
    assert (runs.direction, scores(runs, algorithm="TPE")) == ("maximize", [3, 3, 3])
    assert scores(runs, algorithm="Random", trial=[2, 3]) == [5, 5]
    assert "1 running trial: left out." in runs.notes
    assert runs.notes[-1] == (
        "1 row before the first score of a run: failed so far. Begin later, runs.at_budgets([...]), or say what they "
        "count, runs.score_failures(...)."
    )
    assert runs.failed == "missing"
    named = lt.importers.optuna({"A": first, "B": {"wine": second}}, keys=["algorithm", "benchmark"])
    assert named.levels("benchmark") == ("iris", "wine")


def test_optuna_studies_without_seeds_are_numbered() -> None:
    runs = lt.importers.optuna({"A": [study(*done(3)), study(*done(2))], "B": [study(*done(1))]})
    assert (levels(runs)["seed"], runs.seed_shared) == ((0, 1), False)
    assert "seed is their number in the order given" in runs.notes[0]
    named = lt.importers.optuna({"A": study(*done(3)), "B": study(*done(2))}, names="{benchmark}_iris_{seed}")
    assert levels(named) == {"algorithm": ("A", "B"), "benchmark": ("TPE",), "seed": (7,), "trial": (1,)}
    texts = {("A", "iris", 1): study(*done(3)), ("B", "iris", "x"): study(*done(2))}
    assert lt.importers.optuna(texts).levels("seed") == ("1", "x")  # one of which is no number


# ------------------------------------------------------------------------------------------------------------ sklearn


def test_sklearn_cross_validations_are_runs_over_splits() -> None:
    results = json.loads((FILES / "sklearn_cross_validate.json").read_text())
    runs = lt.importers.sklearn(results, metric="accuracy")
    assert levels(runs) == {"algorithm": ("SVC", "tree"), "benchmark": ("iris", "wine"), "split": (0, 1, 2)}
    assert scores(runs, algorithm="tree", benchmark="wine") == [0.783333, 0.830508, 0.932203]
    assert (runs.direction, runs.score, runs.seed_shared) == ("maximize", "accuracy", False)
    flat = {(a, b): np.array(r["test_accuracy"]) for a, inner in results.items() for b, r in inner.items()}
    assert scores(lt.importers.sklearn(flat)) == scores(runs)  # cross_val_score
    swapped = {"iris": {"SVC": results["SVC"]["iris"], "tree": results["tree"]["iris"]}}
    by_data = lt.importers.sklearn(swapped, metric="accuracy", keys=["benchmark", "algorithm"])
    assert scores(by_data) == scores(runs, benchmark="iris")


def test_sklearn_candidates_of_a_search_are_algorithms() -> None:
    runs = lt.importers.sklearn(FILES / "sklearn_cv_results.csv", metric="accuracy")
    candidates = ("C=1 kernel=linear", "C=1 kernel=rbf gamma=-1.0", "C=1 kernel=rbf gamma=scale")
    assert levels(runs) == {"candidate": candidates, "split": (0, 1, 2)}
    assert scores(runs, candidate=candidates[0]) == [1.0, 1.0, 0.98]
    assert runs.notes[-1].startswith("3 of 9 rows have no finite score (C=1 kernel=rbf gamma=-1.0 3): failed.")
    by = lt.importers.sklearn(FILES / "sklearn_cv_results.csv", metric="accuracy", parameter="kernel")
    gammas = ("-1.0", "not set", "scale")
    search = pd.read_csv(FILES / "sklearn_cv_results.csv")
    both = lt.importers.sklearn(pd.concat([search.assign(data=name) for name in ("iris", "wine")]), metric="accuracy")
    assert levels(both) == {**levels(runs), "benchmark": ("iris", "wine")}
    assert levels(by) == {"param_kernel": ("linear", "rbf"), "split": (0, 1, 2), "param_gamma": gammas}


def test_sklearn_reads_a_fitted_search_with_its_resources() -> None:
    masked = np.ma.MaskedArray(["rbf", "linear", "rbf"], mask=[False, False, False], dtype=object)
    settings = [{"kernel": "rbf"}, {"kernel": "linear"}, {"kernel": "rbf"}]
    found = {"params": settings, "param_kernel": masked, "n_resources": [30, 30, 90], "iter": [0, 0, 1]}
    search = Thing(cv_results_={**found, "split0_test_score": np.array([0.5, 0.6, 0.7]), "mean_fit_time": [1, 1, 1]})
    runs = lt.importers.sklearn({"wine": search})
    wine = {"benchmark": ("wine",), "split": (0,), "n_resources": (30, 90)}
    assert levels(runs) == {"candidate": ("kernel=linear", "kernel=rbf"), **wine}
    assert scores(runs, candidate="kernel=rbf") == [0.5, 0.7]


# --------------------------------------------------------------------------------------------------------------- hpob


CURVES = {"5860": {"14951": {"test0": [0.5, 0.7], "test1": [0.6, None]}}, "4796": {"14951": {"test0": [0.1, 0.4]}}}


def test_hpob_files_are_algorithms_and_tasks_lie_in_search_spaces(tmp_path: Path) -> None:
    (tmp_path / "GP.json").write_text(json.dumps(CURVES))
    with gzip.open(tmp_path / "Random.json.gz", "wt") as file:
        json.dump(CURVES, file)
    runs = lt.importers.hpob(tmp_path, direction="maximize")
    names = {"algorithm": ("GP", "Random"), "task": ("4796/14951", "5860/14951"), "seed": ("test0", "test1")}
    assert levels(runs) == {**names, "trial": (1, 2)}
    refuses(ArgumentError, "direction is required", lt.importers.hpob, {"GP": CURVES})
    assert scores(runs, algorithm="GP", task="5860/14951", seed="test0") == [0.5, 0.7]
    assert "1 of 1 data sets are in several search spaces; in each they are a task of its own." in runs.notes
    assert runs.notes[-1].startswith("2 of 12 rows have no finite score (GP 1, Random 1): failed.")
    whole = lt.importers.hpob({"GP": CURVES, "Random": CURVES}, direction="maximize", first=0)
    assert (whole.levels("trial"), scores(whole)[:3]) == ((0, 1), scores(runs)[:3])
    falling = lt.importers.hpob({"GP": CURVES, "Random": CURVES}, direction="minimize")
    assert any(note.startswith("4 scores are worse than the one before them") for note in falling.notes)


# -------------------------------------------------------------------------------------------------------------- carps


def carps_logs() -> pd.DataFrame:
    """The columns of logs.parquet of CARP-S 1.1, as far as they are filled for one fidelity."""
    rows = [
        (task, optimizer, seed, trial, cost)
        for task, shift in (("bbob/2/1", 0.0), ("yahpo/lcbench/3945", 1.0))
        for optimizer, costs in (("SMAC3-BlackBoxFacade", [3.0, 1.0, 2.0]), ("RandomSearch", [4.0, 5.0, np.inf]))
        for seed in (1, 2)
        for trial, cost in enumerate(np.array(costs) + shift + seed / 10, start=1)
    ]
    table = pd.DataFrame(rows, columns=["task_id", "optimizer_id", "seed", "n_trials", "trial_value__cost"])
    suite = table["task_id"].str.partition("/")[0].str.upper()
    return table.assign(
        benchmark_id=suite, n_function_calls=table["n_trials"], trial_info__config="[0.1]", task_type="blackbox"
    )


def test_carps_logs_have_the_incumbents_of_carps() -> None:
    runs = lt.importers.carps(FILES / "carps")  # logs.parquet, beside which CARP-S writes logs_cfg.parquet
    table = pd.read_parquet(FILES / "carps" / "logs.parquet")
    assert runs.levels("task_id") == ("Pymoo/SO/unconstraint/ackley", "Pymoo/SO/unconstraint/sphere")
    assert scores(runs) == table["trial_value__cost_inc"].tolist()


def test_carps_logs_are_the_best_cost_so_far(tmp_path: Path) -> None:
    carps_logs().to_parquet(tmp_path / "logs.parquet")
    runs = lt.importers.carps(tmp_path / "logs.parquet")
    names = {"optimizer_id": ("RandomSearch", "SMAC3-BlackBoxFacade"), "task_id": ("bbob/2/1", "yahpo/lcbench/3945")}
    assert levels(runs) == {**names, "seed": (1, 2), "n_trials": (1, 2, 3)}
    assert (runs.direction, runs.score) == ("minimize", "trial_value__cost_best_so_far")
    assert scores(runs, optimizer_id="SMAC3-BlackBoxFacade", task_id="bbob/2/1", seed=1) == [3.1, 1.1, 1.1]
    assert "4 of 24 trials have no finite score (RandomSearch 4): they improve nothing." in runs.notes
    assert scores(lt.importers.carps(carps_logs(), best_so_far=False), seed=2, optimizer_id="RandomSearch")[2] == np.inf


def test_carps_refuses_vectors_of_costs_and_other_tables() -> None:
    vectors = carps_logs().assign(trial_value__cost="[0.1, 3.0]")
    with pytest.raises(DataError, match=r"costs of several objectives on 2 tasks \(bbob/2/1, yahpo/lcbench/3945\)"):
        lt.importers.carps(vectors)
    with pytest.raises(DataError, match=r"has no column 'task_id'\. Columns: .* Gather the logs of the runs first"):
        lt.importers.carps(carps_logs().drop(columns="task_id"))
    refuses(UnknownColumnError, "metric names the column 'cost'", lt.importers.carps, carps_logs(), metric="cost")


# --------------------------------------------------------------------------------------------------------------- amlb


def test_amlb_keeps_failures_and_says_why_they_failed() -> None:
    runs = lt.importers.amlb(FILES / "amlb_results.csv", metric="auc")
    assert levels(runs) == {"framework": ("RandomForest", "TPOT"), "task": ("kc2",), "fold": (0, 1)}
    assert scores(runs, framework="RandomForest") == [0.865801, 0.811222]
    assert np.isnan(scores(runs, framework="TPOT")).tolist() == [False, True]
    assert (runs.direction, runs.seed_shared) == ("maximize", False)
    assert runs.notes[-2].startswith("1 of 4 rows has no finite score (TPOT 1): failed.")
    assert runs.notes[-1].startswith("The column status says why. By kind (TimeoutError 1), ")
    assert (runs.failed, runs.score_failures("worst").n_rows) == ("status", 4)
    odd = pd.read_csv(FILES / "amlb_results.csv").assign(info="404: 'ok', they said")
    assert lt.importers.amlb(odd, metric="auc").to_frame()["status"].tolist() == ["ok"] * 3 + ["error"]


def test_amlb_negates_losses_itself_and_old_files_are_turned() -> None:
    table = pd.read_csv(FILES / "amlb_results.csv")
    runs = lt.importers.amlb(table, metric="all")
    assert runs.levels("task") == ("cholesterol", "iris", "kc2")
    assert scores(runs, task="iris", framework="RandomForest") == [-0.126485, -0.027781]
    assert any(note.startswith("Tasks have 3 metrics (auc, neg_logloss, neg_rmse)") for note in runs.notes)
    losses = table["metric"].str.startswith("neg_")
    old = table.assign(
        metric=table["metric"].str.removeprefix("neg_"), result=table["result"].where(~losses, -table["result"])
    )
    assert lt.importers.amlb(old, metric="all").to_frame()["result"].equals(runs.to_frame()["result"])
    alone = lt.importers.amlb(old, metric="logloss")
    assert (alone.direction, scores(alone, framework="RandomForest")) == ("minimize", [0.126485, 0.027781])


def test_amlb_refuses_mixed_metrics_and_repeated_runs() -> None:
    table = pd.read_csv(FILES / "amlb_results.csv")
    with pytest.raises(ArgumentError, match=r"has 3 metrics: auc, neg_logloss, neg_rmse\. Say which, or .*='auc', "):
        lt.importers.amlb(table)
    with pytest.raises(ArgumentError, match=r"metric must be 'all' or one of 'auc', .*, got 'acc'"):
        lt.importers.amlb(table, metric="acc")
    again = pd.concat([table, table.iloc[[3]].assign(result=0.8, utc="2023-05-03T12:00:00")])
    with pytest.raises(DataError, match="1 row repeats a run that is there already, such as framework = TPOT"):
        lt.importers.amlb(again, metric="auc")
    kept = lt.importers.amlb(again.iloc[::-1], metric="auc", duplicates="last")
    assert sorted(scores(kept, framework="TPOT")) == [0.8, 0.87101]
    with pytest.raises(DataError, match=r"is not a results file of AMLB: it has no column 'task', 'framework'"):
        lt.importers.amlb(FILES / "wandb_runs.csv")


# --------------------------------------------------------------------------------------------------------- inspect_ai


def test_inspect_ai_grades_are_numbers_and_questions_lie_in_tasks() -> None:
    runs = lt.importers.inspect_ai(FILES / "inspect_samples.csv", metric="match")
    names = {"model": ("mockllm/a", "mockllm/b"), "task_name": ("capitals", "sums")}
    assert levels(runs) == {**names, "id": ("1", "2", "3", "q1", "q2", "q3", "q4")}
    assert (runs.direction, runs.seed_shared, runs.ignore) == ("maximize", False, ("epoch",))
    assert scores(runs, model="mockllm/a", task_name="sums") == [1, 1, 1, 0] * 2
    assert np.isnan(scores(runs, model="mockllm/b", id="q3")).all()  # both ended in an error
    assert scores(lt.importers.inspect_ai(FILES / "inspect_samples.csv", metric="includes"), id="2", epoch=1) == [1, 1]


def halted(**samples: Any) -> list[dict[str, Any]]:
    """A log with two samples for each of these: why one has no score, and the other with what is given."""
    return [
        {"id": f"{name}{i}", "epoch": 1, **({"scores": {"match": {"value": "C"}}} if i else {}), **why}
        for name, why in samples.items()
        for i, why in enumerate((why, {}))
    ]


def test_inspect_ai_says_why_a_sample_has_no_score(tmp_path: Path) -> None:
    """As inspect_ai writes a log: an error with its message, a limit with its type, the reason why an output ended."""
    samples = halted(
        infra={"error": {"message": "APIConnectionError('Connection error.')", "traceback": "..."}},
        timeout={"error": {"message": "TimeoutError()", "traceback": "..."}},
        error={"error": {"message": "KeyError('x')", "traceback": "..."}, "limit": {"type": "time", "limit": 9.0}},
        slow={"limit": {"type": "working", "limit": 600.0}},
        limit={"limit": {"type": "token", "limit": 4096.0}},
        stopped={"limit": {"type": "operator", "limit": 1.0}},
        refusal={"output": {"choices": [{"stop_reason": "content_filter"}]}},
        missing={"output": {"choices": []}},
    )
    scored = {"scores": {"match": {"value": "I"}}, "limit": {"type": "message", "limit": 30.0}}
    for model, value in (("a", "C"), ("b", "I")):
        log = {"status": "success", "eval": {"task": "t", "model": model}}
        extra = [{"id": "scored", "epoch": 1, **scored}, {"id": "x", "epoch": 1, "scores": {"match": {"value": value}}}]
        (tmp_path / f"{model}.json").write_text(json.dumps({**log, "samples": [*samples, *extra]}))
    runs = lt.importers.inspect_ai(tmp_path)
    table = runs.to_frame().set_index("id")
    kinds = table.loc[table["match"].isna(), "status"].groupby("id").first().to_dict()
    renamed = {"slow": "timeout", "stopped": "infra"}
    assert kinds == {f"{name}0": renamed.get(name, name) for name in ("slow", "stopped", *WHY)}
    assert table.loc["scored", "match"].tolist() == [0.0, 0.0]
    assert (table["status"] == "ok").equals(table["match"].notna())
    assert "2 samples that reached a limit and had a score for it kept it." in runs.notes
    assert any("(error: \"KeyError('x')\"; infra: \"APIConnectionError('Connection" in note for note in runs.notes)
    assert runs.notes[-1].startswith("The column status says why. By kind (error 2, infra 4, limit 2, missing 2")
    roles = {"model": "model", "task": "task_name", "item": "id", "score": "match"}
    policy = dict.fromkeys(WHY, 0) | {"infra": "drop", "refusal": "retry"}
    found = lt.evaluate(runs.to_frame(), failed=runs.failed, score_failures=policy, **roles)
    assert found.to_frame("failures").groupby("kind")["n_failed"].sum().to_dict() == {
        **dict.fromkeys(WHY, 2),
        "infra": 4,
        "timeout": 4,
    }


WHY = ("infra", "timeout", "error", "limit", "refusal", "missing")


def test_inspect_ai_takes_models_from_the_table_of_evaluations() -> None:
    table = pd.read_csv(FILES / "inspect_samples.csv", dtype_backend="pyarrow")  # as samples_df has it
    evals = table[["eval_id", "model", "task_name"]].drop_duplicates()
    bare = table.drop(columns=["model", "task_name"])
    whole = lt.importers.inspect_ai(table, metric="match")
    assert lt.importers.inspect_ai(bare, evals=evals, metric="match").to_frame().equals(whole.to_frame())
    with pytest.raises(DataError, match=r"it has no column 'model', 'task_name'\. Read it by samples_df"):
        lt.importers.inspect_ai(bare, metric="match")
    with pytest.raises(DataError, match="evals lacks 1 evaluations of the samples"):
        lt.importers.inspect_ai(bare, evals=evals.iloc[1:], metric="match")


def test_inspect_ai_refuses_in_words() -> None:
    table = pd.read_csv(FILES / "inspect_samples.csv")
    refuses(ArgumentError, "samples holds 2 scorers: includes, match", lt.importers.inspect_ai, table)
    with pytest.raises(ArgumentError, match="direction is required"):
        lt.importers.inspect_ai(table.assign(score_match=0.25), metric="match")
    with pytest.raises(DataError, match="must hold numbers, but 28 rows hold something else: 'X'"):
        lt.importers.inspect_ai(table.assign(score_match="X"), metric="match")
    with pytest.raises(DataError, match=r"28 rows repeat a run that is there already.*keep one of them"):
        lt.importers.inspect_ai(pd.concat([table, table]), metric="match")


# ------------------------------------------------------------------------------------------------------------ lm_eval


def test_lm_eval_models_and_metrics_come_from_the_results_file() -> None:
    runs = lt.importers.lm_eval(FILES / "lm_eval", metric="acc")
    assert levels(runs) == {"model": ("org/large", "org/small"), "task": ("tiny_choice",), "doc_id": (0, 1, 2)}
    for model, folder in (("org/large", "org__large"), ("org/small", "org__small")):
        results = json.loads(next((FILES / "lm_eval" / folder).glob("results_*.json")).read_text())
        want = results["results"]["tiny_choice"]["acc,none"]
        assert np.mean(scores(runs, model=model)) == pytest.approx(want, rel=1e-12)
    assert (runs.direction, runs.seed_shared) == ("maximize", False)
    assert "Left out: tasks without the metric acc (tiny_sums)." in runs.notes
    named = lt.importers.lm_eval({"S": FILES / "lm_eval/org__small", "L": FILES / "lm_eval/org__large"}, metric="acc")
    assert (named.algorithms, scores(named, model="S")) == (("L", "S"), scores(runs, model="org/small"))


def test_lm_eval_takes_one_filter_of_the_answers() -> None:
    strict = lt.importers.lm_eval(FILES / "lm_eval", metric="exact_match", filter="strict-match")
    assert (scores(strict, model="org/small"), scores(strict, model="org/large")) == ([1, 0], [1, 1])
    lenient = lt.importers.lm_eval(FILES / "lm_eval", metric="exact_match", filter="flexible-extract")
    assert scores(lenient) == [1, 1, 1, 1]
    with pytest.raises(ArgumentError, match="holds 2 filters: strict-match, flexible-extract"):
        lt.importers.lm_eval(FILES / "lm_eval", metric="exact_match")
    refuses(ArgumentError, "holds 3 metrics: acc, acc_norm, exact_match", lt.importers.lm_eval, FILES / "lm_eval")
    with pytest.raises(ArgumentError, match="direction is 'minimize', but 'acc' is to maximize"):
        lt.importers.lm_eval(FILES / "lm_eval", metric="acc", direction="minimize")


def test_lm_eval_knows_that_documents_have_log_likelihoods_and_that_some_metrics_have_no_documents() -> None:
    def samples(name: str, *values: Any) -> dict[str, Any]:
        return {"t": [{"doc_id": i, "filter": "none", "metrics": [name], name: x} for i, x in enumerate(values)]}

    runs = lt.importers.lm_eval({"a": samples("perplexity", -3.0), "b": samples("perplexity", -2.0)})
    assert (runs.direction, runs.notes[-1][:34]) == ("maximize", "perplexity: a document has its log")
    with pytest.raises(DataError, match="What is computed from all documents, as bleu, has no score of one"):
        lt.importers.lm_eval({"a": samples("bleu", ["x", "y"]), "b": samples("bleu", ["x", "y"])}, direction="maximize")
    with pytest.raises(ArgumentError, match="direction is required"):
        lt.importers.lm_eval({"a": samples("tone", 0.1), "b": samples("tone", 0.3)})
    with pytest.raises(DataError, match=r"Nothing says the benchmark of samples\['a'\]"):
        lt.importers.lm_eval({"a": samples("acc", 1)["t"]})
    refuses(DataError, r"is not called samples_<task>_<date>\.jsonl", lt.importers.lm_eval, FILES / "wandb_runs.csv")


# ------------------------------------------------------------------------------------------------------------ rliable


def test_rliable_arrays_are_runs_by_games() -> None:
    arrays = {"DQN": np.array([[0.5, 1.2], [0.4, 1.1], [0.6, np.nan]]), "C51": [[0.9, 1.3]]}
    runs = lt.importers.rliable(arrays, games=["Pong", "Breakout"])
    assert levels(runs) == {"algorithm": ("C51", "DQN"), "game": ("Breakout", "Pong"), "run": (1, 2, 3)}
    assert scores(runs, algorithm="DQN", game="Pong") == [0.5, 0.4, 0.6]
    assert (runs.direction, runs.seed_shared, runs.failed) == ("maximize", False, "nonfinite")
    curves = lt.importers.rliable({"A": np.arange(12.0).reshape(2, 3, 2), "B": np.zeros((1, 3, 2))}, frames=[1e6, 2e6])
    assert (curves.budget, curves.levels("frame")) == ("frame", (1e6, 2e6))
    assert scores(curves, algorithm="A", game="game 2", run=2) == [8, 9]


def test_rliable_files_have_the_medians_of_rliable(tmp_path: Path) -> None:
    runs = lt.importers.rliable(FILES / "rliable_scores.json")
    by_game = runs.to_frame().groupby(["algorithm", "game"])["score"].mean()
    assert by_game.groupby("algorithm").median().to_dict() == pytest.approx({"C51": 0.74825, "DQN": 0.58}, rel=1e-12)
    np.savez(tmp_path / "scores.npz", **json.loads((FILES / "rliable_scores.json").read_text()))
    assert lt.importers.rliable(tmp_path / "scores.npz").to_frame().equals(runs.to_frame())
    (tmp_path / "scores.npz").write_bytes(b"PK broken")
    with pytest.raises(DataError, match=r"is no archive of numbers\. Write it with numpy\.savez"):
        lt.importers.rliable(tmp_path / "scores.npz")


# -------------------------------------------------------------------------------------------------- wandb and mlflow

ROLES: dict[str, Any] = {"score": "val_acc", "direction": "maximize", "algorithm": "model", "seed": "seed"}


def test_wandb_runs_that_crashed_have_failed() -> None:
    runs = lt.importers.wandb(FILES / "wandb_runs.csv", benchmark="dataset", **ROLES)
    assert levels(runs) == {"model": ("RF", "SVC"), "dataset": ("iris", "wine"), "seed": (0, 1)}
    assert np.isnan(scores(runs, model="SVC", seed=1)).all()  # one of them had logged 0.41 before it crashed
    assert runs.failed == "status"
    assert runs.notes[1:3] == (
        "Left out: 1 run that had not ended.",
        "Runs that did not finish (crashed 1, failed 1) have no score.",
    )
    named = lt.importers.wandb(
        FILES / "wandb_runs.csv", score="val_acc", direction="maximize", names="{algorithm}-{benchmark}-{seed}"
    )
    assert scores(named, algorithm="RF") == scores(runs, model="RF")


class Summary:
    """What the summary of a run of wandb.Api() has: items, some of them summaries, but it is no dict."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def items(self) -> Any:
        return {k: Summary(v) if isinstance(v, dict) else v for k, v in self.values.items()}.items()

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


def test_wandb_runs_of_the_api_show_settings_and_metrics() -> None:
    found = [
        Thing(
            name=f"{model}-{seed}",
            state="crashed" if (model, seed) == ("SVC", 1) else "finished",
            config={"model": model, "optimizer": {"lr": 0.1 * (seed + 1)}, "seed": seed, "loss": "hinge"},
            summary=Summary({"loss": 0.5, "val": {"acc": 0.25 * (seed + 1)}}),
        )
        for model in ("RF", "SVC")
        for seed in (0, 1)
    ]
    options: Any = {"score": "val.acc", "direction": "maximize", "algorithm": "model", "seed": "seed"}
    runs = lt.importers.wandb(iter(found), **options, metafeatures=["optimizer.lr"])
    assert np.array_equal(scores(runs), [0.25, 0.5, 0.25, np.nan], equal_nan=True)
    assert levels(runs)["optimizer.lr"] == (0.1, 0.2)
    assert lt.importers.wandb(found, **{**options, "score": "summary.loss"}).score == "summary.loss"
    frame = pd.DataFrame([{"summary": run.summary.values, "config": run.config, "name": run.name} for run in found])
    named = lt.importers.wandb(frame, score="val.acc", direction="maximize", names="{algorithm}-{seed}")
    assert scores(named) == [0.25, 0.5] * 2
    with pytest.raises(DataError, match=r"must be dictionaries, which a csv file of them does not hold\. Give wandb"):
        lt.importers.wandb(frame.astype(str), **options)


def test_wandb_charts_are_runs_over_steps() -> None:
    table = pd.read_csv(FILES / "wandb_chart.csv")
    runs = lt.importers.wandb(table, direction="maximize", names="{algorithm}-{benchmark}-{seed}")
    assert levels(runs) == {"algorithm": ("RF", "SVC"), "benchmark": ("iris",), "seed": (0,), "step": (1, 2, 3)}
    assert scores(runs, algorithm="SVC") == [0.5, 0.9]
    table["SVC-iris-0 - val_acc__MAX"] += 0.1
    grouped = lt.importers.wandb(table, direction="maximize", names="{algorithm}-{benchmark}-{seed}")
    assert any(note.startswith("1 line of 2 are means of several runs, or of several steps") for note in grouped.notes)
    with pytest.raises(ArgumentError, match="names must say what the names of the lines are made of, such as 'RF-"):
        lt.importers.wandb(table, direction="maximize")


def test_mlflow_names_parameters_and_metrics_as_they_were_logged() -> None:
    runs = lt.importers.mlflow(FILES / "mlflow_runs.csv", benchmark="dataset", **ROLES)
    assert levels(runs) == {"params.model": ("RF", "SVC"), "params.dataset": ("iris", "wine"), "params.seed": (0, 1)}
    assert scores(runs, **{"params.model": "RF", "params.dataset": "wine"}) == [0.96, 0.95]
    assert np.isnan(scores(runs, **{"params.model": "SVC", "params.dataset": "wine"})).tolist() == [True, False]
    in_memory = pd.read_csv(FILES / "mlflow_runs.csv", dtype={"params.seed": str})  # as search_runs has parameters
    assert lt.importers.mlflow(in_memory, benchmark="dataset", **ROLES).levels("params.seed") == (0, 1)


def test_exports_are_told_from_other_tables() -> None:
    with pytest.raises(DataError, match="is not a table of MLflow's runs: it has no column 'run_id', 'status'"):
        lt.importers.mlflow(FILES / "wandb_runs.csv", **ROLES)
    with pytest.raises(DataError, match="is not an export of Weights & Biases: it has no column 'Name'"):
        lt.importers.wandb(FILES / "mlflow_runs.csv", **ROLES)


# --------------------------------------------------------------------------------------------------------------- wide


def test_wide_tables_of_papers_are_numbers_with_what_they_do_not_say() -> None:
    table = {
        "data set": ["iris", "wine", "adult", "Avg. rank", "mean squares"],
        "RF": ["$0.95 \\pm 0.01$", "0.97 (0.02)", ".85+/-.1", "1.5", "0.5"],
        "SVC": ["\\textbf{0.96} \u00b1 0.03", "-", "8.1e-1", "1.2", "**0.25**"],
    }
    runs = lt.importers.wide(table, direction="maximize", averaged=10)
    assert levels(runs) == {"algorithm": ("RF", "SVC"), "data set": ("adult", "iris", "mean squares", "wine")}
    assert scores(runs, algorithm="RF") == [0.95, 0.97, 0.85, 0.5]
    assert runs.to_frame()["spread"].dropna().tolist() == [0.01, 0.02, 0.1, 0.03]
    assert np.isnan(scores(runs, algorithm="SVC")).tolist() == [False, True, False, False]
    assert runs.notes[1] == "Left out: rows that sum up the others (Avg. rank)."
    assert runs.notes[-2].startswith(
        "Each number is taken as the mean of 10 runs, so the variation between runs is not"
    )
    assert runs.notes[-1].startswith("1 of 8 cells has no score. Where runs failed, say what a failure counts")
    with pytest.raises(DataError, match="'data set' must name every row by itself, but iris stands in several"):
        lt.importers.wide({**table, "data set": ["iris", "iris", "x", "y", "z"]}, direction="maximize")
    with pytest.raises(DataError, match=r"The column 'SVC' holds 'good', which is no number such as 0\.93"):
        lt.importers.wide({**table, "SVC": ["good"] * 5}, direction="maximize")
    with pytest.raises(ArgumentError, match="benchmark must be a column of the table, got 'task'"):
        lt.importers.wide(table, direction="maximize", benchmark="task")


# ---------------------------------------------------------------------------- promptfoo, DeepEval and TensorBoard


def test_promptfoo_has_a_row_per_test_case_provider_and_repetition() -> None:
    """Written by promptfoo 0.121.20: two providers, nine sums, each twice; 9 and 9 is an error of the small one."""
    file = FILES / "promptfoo_results.json.gz"
    runs = lt.importers.promptfoo(file, benchmark="task")
    written = json.loads(gzip.decompress(file.read_bytes()))["results"]["results"]
    for name in ("small", "large"):
        wanted = [row["score"] for row in written if row["provider"]["label"] == name and row["failureReason"] != 2]
        assert [score for score in scores(runs, provider=name) if np.isfinite(score)] == wanted
    assert levels(runs)["task"] == ("sums",)
    assert runs.to_frame()["epoch"].value_counts().to_dict() == {1: 18, 2: 18}
    failed = runs.to_frame().query("status != 'ok'")
    assert failed[["provider", "question", "status"]].drop_duplicates().to_numpy().tolist() == [
        ["small", '{"a": 9, "b": 9}', "infra"]
    ]
    exact = lt.importers.promptfoo(file, metric="exact")
    named = [row["namedScores"]["exact"] for row in written if row["namedScores"]]
    assert [score for score in scores(exact) if np.isfinite(score)] == named


@pytest.mark.parametrize(
    "damaged",
    [
        {"testCases": [], "metricsScores": None},
        {"testCases": [], "metricsScores": "x"},
        {"eval": {"model": 1, "task": 2}, "samples": 3},
        {"evalId": 1, "results": {"results": [{"namedScores": 3, "prompt": "p", "testCase": "t", "provider": [1]}]}},
        {"testCases": [{"metricsData": 3}], "metricsScores": [], "hyperparameters": "x"},
    ],
)
def test_damaged_evaluations_are_refused_in_words(damaged: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text(json.dumps(damaged))
    for read in (lt.importers.promptfoo, lt.importers.deepeval):
        with pytest.raises((DataError, ArgumentError)):
            read(tmp_path / "out.json")
    recognised_file(tmp_path / "out.json")  # whatever it is taken for, nothing breaks


def test_promptfoo_asks_what_is_compared_and_for_keys_that_exist() -> None:
    rows = [
        {"provider": p, "prompt": {"label": q}, "vars": {"a": a}, "score": a, "testCase": {"metadata": {"kind": "x"}}}
        for p in "AB"
        for q in "PQ"
        for a in (0, 1)
    ]
    refuses(ArgumentError, "vary in providers and in prompts", lt.importers.promptfoo, {"results": rows})
    runs = lt.importers.promptfoo({"results": rows}, algorithm="prompt")
    assert (runs.algorithm, runs.metafeatures) == ("prompt", ("provider",))
    with pytest.raises(DataError, match=r"has no 'task' in its metadata.*'kind'"):
        lt.importers.promptfoo({"results": rows}, algorithm="prompt", benchmark="task")
    with pytest.raises(ArgumentError, match="metric must be"):
        lt.importers.promptfoo({"results": rows}, algorithm="prompt", metric="exact")
    refuses(DataError, "holds no results of promptfoo", lt.importers.promptfoo, {"results": {"version": 3}})


def test_deepeval_has_a_row_per_test_case_of_each_model() -> None:
    """Written by DeepEval: eight sums, of which the small model has three right and the large one six."""
    runs = lt.importers.deepeval(FILES / "deepeval", direction="maximize")
    assert {name: sum(scores(runs, model=name)) for name in ("small", "large")} == {"small": 3, "large": 6}
    assert levels(runs)["question"][0] == "0+1"
    with pytest.raises(DataError, match="does not say its agent: log it"):
        lt.importers.deepeval(FILES / "deepeval", direction="maximize", algorithm="agent")
    case = {
        "input": "x",
        "metricsData": [{"name": "A", "score": 1.0}, {"name": "B", "score": None, "error": "timed out"}],
    }
    both = [{"hyperparameters": {"model": name}, "testCases": [case]} for name in "ab"]
    refuses(ArgumentError, "2 metrics", lt.importers.deepeval, both, direction="maximize")
    refuses(DataError, "no finite score", lt.importers.deepeval, both, direction="maximize", metric="B")


def test_tensorboard_has_the_scalars_of_each_folder() -> None:
    """Written by tensorboard 2.21: two algorithms, two environments, three seeds, three steps."""
    pytest.importorskip("tensorboard", reason="event files are read by it")
    runs = lt.importers.tensorboard(FILES / "tensorboard", score="return", direction="maximize")
    assert levels(runs) == {
        "algorithm": ("ppo", "sac"),
        "benchmark": ("cartpole", "pendulum"),
        "seed": (0, 1, 2),
        "step": (100, 200, 300),
    }
    assert scores(runs, algorithm="sac", benchmark="pendulum", seed=2) == [1.0, 2.5, 3.0]  # 2 at 200 was logged again
    assert runs.notes[-1] == "1 values were logged again at the same step: the last one counts."
    with pytest.raises(ArgumentError, match="logs holds 2 scalars: return, train/loss"):
        lt.importers.tensorboard(FILES / "tensorboard", direction="maximize")
    with pytest.raises(DataError, match="does not fit the name"):
        lt.importers.tensorboard(
            FILES / "tensorboard", score="return", direction="maximize", names="{algorithm}_{seed}"
        )


# --------------------------------------------------------------------------------------------------- Stable-Baselines3


def test_sb3_has_the_episodes_of_each_folder() -> None:
    """Written by the Monitor of stable-baselines3 2.9.2 and gymnasium 1.4; steps are those of its results_plotter."""
    runs = lt.importers.sb3(FILES / "sb3")
    assert levels(runs)["algorithm"] == ("lean", "random")
    assert levels(runs)["benchmark"] == ("Acrobot-v1", "CartPole-v1")
    one = runs.to_frame().query("algorithm == 'random' and benchmark == 'CartPole-v1' and seed == 1")
    assert one[["r", "steps"]].to_numpy().tolist()[:3] == [[11.0, 11], [25.0, 36], [40.0, 76]]
    several = runs.to_frame().query("algorithm == 'lean' and benchmark == 'CartPole-v1' and seed == 1")
    assert several["steps"].tolist() == [80, 160, 240, 320, 400, 480]  # of two environments, one after the other
    assert runs.notes[-1] == "1 run of several environments: episodes in the order of time."
    assert lt.recommend(runs).runs.score == "r_area"


def test_sb3_takes_the_environment_where_folders_do_not_name_it(tmp_path: Path) -> None:
    for name in ("ppo_1", "a2c_1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "monitor.csv").write_text(
            '#{"t_start": 1.0, "env_id": "Reach"}\nr,l,t,is_success\n2,5,1,1\n3,4,2,0\n'
        )
    runs = lt.importers.sb3(tmp_path, names="{algorithm}_{seed}", score="is_success")
    assert levels(runs)["benchmark"] == ("Reach",)
    assert scores(runs, algorithm="ppo") == [1.0, 0.0]
    assert any("env_id in the files" in note for note in runs.notes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("r,l,t\n1,2,3\n", "does not begin with the line of a Monitor"),
        ('#{"t_start": 1.0, "env_id": "E"}\nr,t\n1,3\n', "has no column 'l'"),
        ('#{"t_start": 1.0, "env_id": "E"}\nr,l,t\n1,x,3\n', "'l' must hold numbers"),
        ('#{"t_start": 1.0, "env_id": "E"}\nr,l,t\n', "logs hold no episode"),
        ('#{"t_start": 1.0, "env_id": "E"}\n', "does not begin with the line of a Monitor"),
    ],
)
def test_a_file_that_is_not_of_the_monitor_is_refused(tmp_path: Path, text: str, words: str) -> None:
    folder = tmp_path / "ppo" / "E" / "1"
    folder.mkdir(parents=True)
    (folder / "monitor.csv").write_text(text)
    refuses(DataError, words, lt.importers.sb3, tmp_path)


def test_sb3_refuses_other_columns_and_objects() -> None:
    refuses(UnknownColumnError, "Columns: r", lt.importers.sb3, FILES / "sb3", score="length")
    refuses(ArgumentError, "logs must be a folder", lt.importers.sb3, [3])
    refuses(DataError, "does not fit the name", lt.importers.sb3, FILES / "sb3", names="{algorithm}_{seed}")


# --------------------------------------------------------------------------------------------------- ClearML and Aim

LOGGED: dict[str, Any] = {"direction": "maximize", "algorithm": "algorithm", "benchmark": "env", "seed": "seed"}


def test_clearml_has_the_scalars_of_sessions_over_their_iterations() -> None:
    """Written by the offline mode of clearml 2.1.12; the source code of the tasks was taken out."""
    runs = lt.importers.clearml(FILES / "clearml", score="return", **LOGGED, metafeatures="lr")
    assert levels(runs) == {
        "General/algorithm": ("ppo", "sac"),
        "General/env": ("pendulum",),
        "General/seed": (0, 1),
        "iteration": (0, 100, 200),
        "General/opt/lr": (0.1,),
    }
    for algorithm, seed in ((a, s) for a in ("ppo", "sac") for s in (0, 1)):
        one = {"General/algorithm": algorithm, "General/seed": seed}
        assert scores(runs, **one) == logged_returns(algorithm, "pendulum", seed)[:3]
    single = lt.importers.clearml(
        FILES / "clearml", score="final", direction="maximize", names="{algorithm}-{benchmark}-{seed}"
    )
    assert single.budget is None
    assert scores(single, algorithm="sac", seed=1) == logged_returns("sac", "pendulum", 1)[3:]


def test_a_session_of_clearml_counts_once_beside_its_archive(tmp_path: Path) -> None:
    for path in (FILES / "clearml").iterdir():
        shutil.copy(path, tmp_path)
        shutil.unpack_archive(path, tmp_path / path.stem)
    both = lt.importers.clearml(tmp_path, score="return", **LOGGED)
    assert both.n_rows == lt.importers.clearml(FILES / "clearml", score="return", **LOGGED).n_rows == 12
    assert lt.importers.clearml([str(p) for p in tmp_path.glob("*.zip")], score="final", **LOGGED).n_rows == 4


def test_a_session_of_clearml_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMEMTEST_MAX_GB", "1e-6")
    refuses(DataError, "unpacked, holds more than", lt.importers.clearml, FILES / "clearml", score="final", **LOGGED)


def task(i: int, model: str, status: str = "completed", **scalars: Any) -> Any:
    """What a Task of clearml shows of a task on its server."""
    shown = {title: {"test": {"x": [10 * k for k in range(len(y))], "y": y}} for title, y in scalars.items()}
    return Thing(
        id=str(i),
        name=f"{model}-{i}",
        get_project_name=lambda: "study",
        get_status=lambda: status,
        get_parameters=lambda: {"Args/model": model, "Args/seed": str(i // 2), "General/model": "x"},
        get_all_reported_scalars=lambda: shown,
        get_reported_single_values=lambda: {"top": float(i)} if status == "completed" else {},
    )


def test_tasks_of_a_clearml_server_have_states_and_parameters() -> None:
    tasks = [task(0, "A", acc=[0.1, 0.2]), task(1, "B", acc=[0.3, 0.4]), task(2, "A", "failed", acc=[0.5])]
    tasks += [task(3, "B", acc=[0.6]), task(4, "B", "in_progress", acc=[0.7]), task(5, "A", acc=[])]
    roles: dict[str, Any] = {"direction": "maximize", "algorithm": "Args/model", "seed": "seed"}
    runs = lt.importers.clearml(tasks, score="acc", **roles)
    assert scores(runs)[:4] == [0.1, 0.2, 0.3, 0.4]
    assert np.isnan(scores(runs, **{"Args/model": "A", "Args/seed": 1})).all()
    assert runs.notes[1:4] == (
        "Left out: 1 run that never logged acc/test.",
        "Left out: 1 run that had not ended.",
        "Runs that did not finish (failed 1) have no score.",
    )
    top = lt.importers.clearml(tasks[:4], score="top", **roles)
    assert (top.budget, scores(top, **{"Args/model": "B"})) == (None, [1.0, 3.0])
    with pytest.raises(ArgumentError, match="algorithm is 'model', which may be 'Args/model', 'General/model'"):
        lt.importers.clearml(tasks, score="acc", **{**roles, "algorithm": "model"})
    refuses(ArgumentError, r"The log holds 2 scalars: acc/test, top\. Say which", lt.importers.clearml, tasks, **roles)


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("{", "[]"),
        ("3", "[]"),
        ('{"name": "x"}', "[]"),
        ('{"id": "1", "hyperparams": {"General": 3}}', "[]"),
        ('{"id": "1"}', "[3]"),
        ('{"id": "1"}', '[{"type": "training_stats_scalar"}]'),
        ('{"id": "1"}', '[{"type": "training_stats_scalar", "metric": "a", "variant": "b", "iter": 0, "value": "x"}]'),
    ],
)
def test_damaged_sessions_of_clearml_are_refused(tmp_path: Path, text: str, metrics: str) -> None:
    (tmp_path / "task.json").write_text(text)
    (tmp_path / "metrics.jsonl").write_text(metrics)
    with pytest.raises(DataError, match=r"is no session of ClearML that can be read\. Give what Task.set_offline"):
        lt.importers.clearml(tmp_path, **LOGGED)


def test_clearml_refuses_what_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no task.json and no offline-\*.zip in the folder"):
        lt.importers.clearml(tmp_path, **LOGGED)
    (tmp_path / "offline-1.zip").write_bytes(b"PK")
    refuses(DataError, "is no session of ClearML that can be read", lt.importers.clearml, tmp_path, **LOGGED)
    with pytest.raises(FileNotFoundError, match=r"There is no file 'offline-2\.zip'"):
        lt.importers.clearml(tmp_path / "offline-2.zip", **LOGGED)
    with pytest.raises(ArgumentError, match="tasks must be sessions of ClearML or tasks of its server, got 3"):
        lt.importers.clearml([3], **LOGGED)
    (tmp_path / "offline-1.zip").unlink()
    (tmp_path / "task.json").write_text('{"id": "1"}')
    refuses(DataError, "Tasks of ClearML without a scalar", lt.importers.clearml, tmp_path, **LOGGED)


def aim_run(model: str, seed: int, values: list[float], *, active: bool = False) -> Any:
    """What a Run of aim shows of itself."""
    metrics = [
        Thing(
            name="acc",
            context=Thing(to_dict=lambda subset=subset: {"subset": subset}),
            data=Thing(numpy=lambda: (np.arange(len(values)), [np.array(values), np.zeros(len(values))])),
        )
        for subset in ("val", "test")
    ]
    shown = {"hparams": {"model": model, "seed": seed}}
    return Thing(
        name=f"{model}-{seed}", experiment="e", active=active, metrics=lambda: metrics, get=lambda _, __: shown
    )


def test_aim_runs_have_metrics_by_name_and_context() -> None:
    found = [aim_run(m, s, [s + 0.1, s + 0.2]) for m in "AB" for s in (0, 1)] + [aim_run("A", 2, [9.0], active=True)]
    roles: dict[str, Any] = {"direction": "maximize", "algorithm": "model", "seed": "seed"}
    runs = lt.importers.aim(iter(found), score="acc subset=val", **roles)
    assert levels(runs) == {"hparams.model": ("A", "B"), "hparams.seed": (0, 1), "step": (0, 1)}
    assert scores(runs, **{"hparams.model": "B"}) == [0.1, 0.2, 1.1, 1.2]
    assert runs.notes[1] == "Left out: 1 run that had not ended."
    with pytest.raises(ArgumentError, match="score is 'acc', which may be 'acc subset=val', 'acc subset=test'"):
        lt.importers.aim(found, score="acc", **roles)
    with pytest.raises(ArgumentError, match="runs must be the folder of Aim's repository or runs of it, got 3"):
        lt.importers.aim([3], **roles)


def test_aim_reads_repositories_that_are_indexed(tmp_path: Path) -> None:
    """Written by aim itself (3.29.1 when this was written)."""
    refuses(DataError, r"there is no repository of Aim \(.aim\) in", lt.importers.aim, tmp_path, **LOGGED)
    pytest.importorskip("aim", reason="its repositories are read by it")
    runs = lt.importers.aim(tracked(tmp_path / "study"), score="return", **LOGGED, metafeatures=["lr"])
    assert runs.budget == "step"
    for algorithm, seed in ((a, s) for a in ("ppo", "sac") for s in (0, 1)):
        one = {"hparams.algorithm": algorithm, "hparams.seed": seed}
        assert scores(runs, **one) == logged_returns(algorithm, "pendulum", seed)[:3]
    with pytest.raises(DataError, match=r"Aim has indexed 0 of 4 runs .* aim storage --repo '.*' reindex"):
        lt.importers.aim(tracked(tmp_path / "other", indexed=False), score="return", **LOGGED)


# ----------------------------------------------------------------------------------------------------------- refusals

ANY = (ArgumentError, DataError, UnknownColumnError)
REFUSED: list[tuple[str, Any, dict[str, Any], Any, str]] = [
    *(("optuna", *row) for row in [
        ([study(*done(1))], {}, DataError, r"Nothing says the algorithm of studies\[0\]\. Give studies by name, "),
        ({"A": study(*done(1))}, {}, DataError, "one algorithm only, 'A': there is nothing to compare"),
        ({"A": study(("COMPLETE", [1, 2]), way="MINIMIZE MAXIMIZE")}, {}, ArgumentError,
         r"studies\['A'\] holds 2 objectives: 0, 1\. Say which: objective='0'"),
        ({"A": study(*done(1)), "B": study(*done(1), way="MAXIMIZE")}, {}, DataError, "studies differ in direction: "),
        ({"A": study(*done(1)), "B": study(*done(1))}, {"direction": "maximize"}, ArgumentError, "says minimize"),
        ({"A": pd.DataFrame({"number": [0], "value": [1.0]})}, {}, ArgumentError, "direction is required"),
        ({"A": pd.DataFrame({"trial": [0]})}, {}, DataError, r"has no column 'number'\. Columns: trial\. Save study"),
        ({("A", 1, 2, 3): study(*done(1))}, {}, ArgumentError, r"its names are \(algorithm, benchmark, seed\)"),
        (FILES / "optuna", {"names": "{algorithm}-{seed}"}, DataError, "does not fit the name 'Random_0'"),
        (FILES / "optuna", {"names": "{tool}"}, ArgumentError, "names must be a pattern with some of "),
        ([], {}, ArgumentError, "studies must not be empty"),
        (3, {}, ArgumentError, "studies must be a dataframe"),
        ({"A": study(*done(1))}, {"keys": ["tool"]}, ArgumentError, "keys must be different ones of algorithm, "),
        ("nowhere/*.csv", {}, DataError, "no file matches 'nowhere"),
    ]),
    *(("sklearn", given, options, ANY[:2], words) for given, options, words in [
        ({"test_a": [1], "test_b": [1]}, {}, "Nothing says the algorithm of results. Give results by name"),
        ({"A": {"test_a": [1], "test_b": [1]}}, {}, r"results\['A'\] holds 2 metrics: a, b\. Say which: metric='a'"),
        ({"A": {"split0_test_score": [1]}}, {"keys": "algorithm"}, "The algorithms of a search are its candidates"),
        ({"A": {"split0_test_score": [1]}, "B": {"test_score": [1]}}, {}, "mixes searches and cross-validations"),
        ({"A": pd.DataFrame({"fit_time": [1]})}, {}, "must be cv_results_ of a search"),
        ({"A": {"test_score": ["high"]}, "B": {"test_score": [1]}}, {}, "must hold numbers, but 1 row holds something"),
        ([{"split0_test_score": [1]}] * 2, {}, "Several searches need the names of their data sets"),
        (None, {}, "results must be a dataframe"),
    ]),
    *(("hpob", given, {"direction": "maximize"}, DataError, words) for given, words in [
        (CURVES, r"Nothing says the algorithm of curves: give \{'GP': "),
        ({"GP": [0.1]}, "must be {space: {task: {seed: "),
        ({"GP": {"5860": {"1": {"s": 3}}}, "RS": CURVES}, "5860 / 1 / s must be a list of scores, got 3"),
        ({"GP": {"5860": {"1": {"s": ["high"]}}}, "RS": CURVES}, "must be a list of numbers, got high"),
        (FILES / "wandb_runs.csv", "is not valid JSON"),
    ]),
    *(("rliable", given, options, ANY[:2], words) for given, options, words in [
        ({"A": [1.0, 2.0]}, {}, r"must be an array of runs x games, or .*, got the shape \(2,\)"),
        ({"A": [[1.0, 2.0]], "B": [[1.0]]}, {}, "same games for all algorithms, but 'A' has 2 and 'B' 1"),
        ({"A": [[1.0], [1.0, 2.0]]}, {}, "must be an array of numbers, runs x games"),
        ({"A": [[1.0, 2.0]], "B": [[1.0, 2.0]]}, {"games": ["x"]}, "games must be 2 different names"),
        ({"A": [[1.0]], "B": [[1.0]]}, {"frames": [1]}, "frames are for arrays of runs x games x frames"),
        ({"A": [[1.0, 2.0]]}, {}, "one algorithm only, 'A'"),
        ([[1.0]], {}, r"scores\[0\] must be a dict"),
        (3, {}, "scores must be a dict {algorithm: array of runs x games}, got 3"),
    ]),
    *((tool, FILES / f"{tool}_runs.csv", {**ROLES, "benchmark": "dataset"} | changed, ANY, words)
      for tool, changed, words in [
        ("wandb", {"score": None}, "score must name a column. Columns: Name, State"),
        ("wandb", {"algorithm": None}, "algorithm must name a column, or names="),
        ("wandb", {"algorithm": "tool"}, "algorithm names the column 'tool'"),
        ("wandb", {"seed": None}, "4 rows repeat a run that is there already, .* Name the column that distinguishes"),
        ("wandb", {"score": "model"}, "The column 'model' must hold numbers, but 9 rows hold something else: 'RF'"),
        ("wandb", {"names": "{algorithm}/{seed}"}, "does not fit the name 'RF-iris-0'"),
        ("mlflow", {"score": "acc"}, "score names the column 'acc'"),
        ("mlflow", {"metafeatures": ["colour"]}, "metafeatures names the column 'colour'"),
        ("mlflow", {"benchmark": "team"}, "params.dataset|has no value of 'tags.team'|repeat"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "given", "options", "error", "words"), REFUSED)
def test_what_is_not_of_a_tool_is_refused_in_words(tool, given, options, error, words):
    refuses(error, words, getattr(lt.importers, tool), given, **options)
