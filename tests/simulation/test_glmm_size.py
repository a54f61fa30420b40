"""How often generalised mixed models call equal models different: tasks crossed with models, items within tasks."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.append(str(Path(__file__).parent))

from harness import answers_of, at_least, at_most, each, rate_of
from scipy import special, stats

import lmemtest as lt
from lmemtest.lmm.engine.ddf import curvature
from lmemtest.lmm.means.adjust import adjust

FORMULA = "y ~ model + (1 | task) + (1 | item) + (1 | task:model)"


def table(
    rng: np.random.Generator, *, models: int, tasks: int, items: int, accuracy: float, between: float = 0.5,
    better: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Answers of models that are equal but for the first, which is ``better`` on the logit scale."""
    t, i, m = (a.ravel() for a in np.meshgrid(range(tasks), range(items), range(models), indexing="ij"))
    eta = special.logit(accuracy) + rng.normal(0.0, 0.5, tasks)[t] + rng.normal(0.0, 1.0, (tasks, items))[t, i]
    eta = eta + rng.normal(0.0, between, (tasks, models))[t, m] + better * (m == 0)
    y = (rng.random(len(eta)) < special.expit(eta)).astype(float)
    item = t * items + i
    return pd.DataFrame({"y": y, "model": m.astype(str), "task": t.astype(str), "item": item.astype(str)})


def verdicts(rng: np.random.Generator, **design: float) -> dict[str, float]:
    """Whether some pair differs at 5 %: by default, in probability, by Satterthwaite alone (of two models), by z."""
    data = table(rng, **design)
    if not 0 < data["y"].sum() < len(data):
        return dict.fromkeys(("default", "probability", "satterthwaite", "z", "unsettled"), False)
    fit = lt.fit_glmm(FORMULA, data)
    means = fit.emmeans("model")
    out = {
        "default": bool((means.pairs().to_frame()["p_value"] < 0.05).any()),
        "probability": bool((fit.emmeans("model", type="response").pairs().to_frame()["p_value"] < 0.05).any()),
        "z": bool((fit.emmeans("model", ddf="asymptotic").pairs().to_frame()["p_value"] < 0.05).any()),
        "unsettled": not fit.converged,
    }
    if design["models"] == 2:
        df = curvature(fit.problem, fit.optim).satterthwaite(np.array([[0.0, 1.0]]))[0]
        out["satterthwaite"] = bool(2 * stats.t.sf(abs(fit.params.iloc[1] / fit.bse.iloc[1]), min(df, 1e9)) < 0.05)
    return out


def held(rng: np.random.Generator, **design: float) -> dict[str, float]:
    """Whether the interval of the first model's probability holds that of further items of further tasks."""
    data = table(rng, **design)
    if not 0 < data["y"].sum() < len(data):
        return {"held": False, "outside": False}
    means = lt.fit_glmm(FORMULA, data).emmeans("model", type="response").to_frame()
    sd = np.sqrt(0.5**2 + 1.0 + design.get("between", 0.5) ** 2)
    x, weight = np.polynomial.hermite_e.hermegauss(80)
    true = special.expit(special.logit(design["accuracy"]) + sd * x) @ weight / weight.sum()
    low, high = means.loc[0, ["ci_low", "ci_high"]]
    return {"held": low <= true <= high, "outside": low < 0.0 or high > 1.0}


def held_on_these(rng: np.random.Generator, *, accuracy: float) -> dict[str, float]:
    """Whether the interval of the first model's probability on these five tasks holds that of further items of them."""
    t, i, m = (a.ravel() for a in np.indices((5, 40, 2)))
    of_task = special.logit(accuracy) + rng.normal(0.0, 0.5, 5)[:, None] + rng.normal(0.0, 0.5, (5, 2))
    eta = of_task[t, m] + rng.normal(0.0, 1.0, (5, 40))[t, i]
    columns = {"model": m.astype(str), "task": t.astype(str), "item": (t * 40 + i).astype(str)}
    fit = lt.fit_glmm(FORMULA, {"y": rng.random(len(eta)) < special.expit(eta), **columns})
    found = fit.emmeans("model", type="response", these="task")
    x, weight = np.polynomial.hermite_e.hermegauss(80)
    true = (special.expit(of_task[:, :, None] + x) @ weight / weight.sum()).mean(axis=0)
    pair = found.pairs().to_frame().loc[0]
    return {
        "held": found.ci_low[0] <= true[0] <= found.ci_high[0],
        "difference": pair["ci_low"] <= true[0] - true[1] <= pair["ci_high"],
    }


def held_on_unequal(rng: np.random.Generator, *, accuracy: float) -> dict[str, float]:
    """The same where one of six tasks has ten times as many answers as each of the others."""
    n, sd, between = np.array([200, *[20] * 5]), 0.7, 0.3
    eta = special.logit(accuracy) + rng.normal(0.0, sd, 6) + rng.normal(0.0, between, (2, 6))
    answers = {"k": rng.binomial(n, special.expit(eta)).ravel(), "n": np.tile(n, 2), "model": np.repeat(["A", "B"], 6)}
    fit = lt.fit_glmm("k ~ model + (1 | task) + (1 | task:model)", answers | {"task": list("uvwxyz") * 2}, trials="n")
    low, high = fit.emmeans("model", type="response").to_frame().loc[0, ["ci_low", "ci_high"]]
    x, weight = np.polynomial.hermite_e.hermegauss(80)
    true = special.expit(special.logit(accuracy) + np.hypot(sd, between) * x) @ weight / weight.sum()
    return {"held": low <= true <= high}


def held_on_exposures(rng: np.random.Generator) -> dict[str, float]:
    """Whether the interval of an expected count holds that of further groups, where exposures are of 1 to 30 hours."""
    group, hours = np.repeat(np.arange(6), 2), np.round(np.geomspace(1.0, 30.0, 12))[rng.permutation(12)]
    rate = np.log(2.0) + rng.normal(0.0, 0.5, 6)[group]
    table = {"y": rng.poisson(hours * np.exp(rate)), "hours": hours, "model": list("AB") * 6, "group": group}
    fit = lt.fit_glmm("y ~ model + offset(log(hours)) + (1 | group)", table, family="poisson")
    row = fit.emmeans("model", type="response").to_frame().loc[0]
    true = 2.0 * np.exp(np.log(hours).mean() + 0.5 * 0.5**2)
    return {"held": row["ci_low"] <= true <= row["ci_high"], "ratio": row["response"] / true}


# Tables of two models for profiles: tasks, answers of a model to a task, advantage, its standard deviation over tasks.
PROFILED = {"20 tasks": (20, 20, 0.5, 0.3), "5 tasks": (5, 20, 0.5, 0.3), "separation": (10, 5, 4.0, 0.0)}


def held_by_profile(rng: np.random.Generator, *, of: str) -> dict[str, float]:
    """Whether the profile interval of the better model's log odds ratio holds it, and the interval of its pair."""
    tasks, asked, advantage, between = PROFILED[of]
    eta = 1.0 + rng.normal(0.0, 0.7, (tasks, 1)) + advantage * np.arange(2) + rng.normal(0.0, between, (tasks, 2))
    right = rng.binomial(asked, special.expit(eta)).ravel()
    table = {"right": right, "asked": asked, "model": ["A", "B"] * tasks, "task": np.repeat(np.arange(tasks), 2)}
    fit = lt.fit_glmm("right ~ model + (1 | task)" + " + (1 | task:model)" * (between > 0.0), table, trials="asked")
    row = fit.profile(linear={"B - A": [0.0, 1.0]}, progress=False).to_frame().loc[0]
    wald = fit.emmeans("model").pairs().to_frame().loc[0]
    return {
        "held": row["ci_low"] <= advantage <= row["ci_high"],
        "wald": wald["ci_low"] <= -advantage <= wald["ci_high"],
        "separated": fit.prior.any(),
    }


# The grid: a fraction of 3 to 20 tasks, 10 to 200 items, accuracies of 0.5 to 0.99, and 2 to 10 models that are equal,
# equal but for one that is erratic (three times the standard deviation between tasks), or graded.
Cell = tuple[int, int, float, int, str, float]
EQUAL: tuple[Cell, ...] = (
    *(
        (*cell, "equal", 0.5)
        for cell in (
            (3, 10, 0.5, 2), (3, 10, 0.95, 4), (3, 40, 0.8, 10), (3, 40, 0.99, 2), (3, 200, 0.5, 4), (3, 200, 0.95, 2),
            (5, 10, 0.8, 4), (5, 10, 0.99, 10), (5, 40, 0.5, 2), (5, 40, 0.95, 10), (5, 200, 0.8, 2), (5, 200, 0.99, 4),
            (8, 10, 0.5, 10), (8, 10, 0.95, 2), (8, 40, 0.8, 2), (8, 40, 0.99, 4), (8, 200, 0.95, 4),
            (20, 10, 0.8, 2), (20, 10, 0.99, 4), (20, 40, 0.5, 4), (20, 40, 0.95, 2),
        )
    ),
    (5, 40, 0.8, 4, "equal", 0.25),
    (5, 40, 0.95, 2, "equal", 0.25),
)  # fmt: skip
ERRATIC: tuple[Cell, ...] = tuple(
    (*cell, "erratic", 0.5) for cell in ((3, 40, 0.5, 4), (8, 40, 0.5, 4), (8, 40, 0.8, 10))
)
GRADED: tuple[Cell, ...] = tuple(
    (*cell, "graded", 0.5)
    for cell in ((5, 40, 0.8, 2), (5, 40, 0.95, 2), (8, 40, 0.95, 4), (5, 200, 0.95, 2), (20, 40, 0.95, 2),
                 (3, 40, 0.8, 4), (5, 10, 0.8, 4))
)  # fmt: skip
TEN: tuple[Cell, ...] = (
    (3, 40, 0.8, 10, "erratic", 0.5), (8, 40, 0.8, 10, "equal", 0.5), (8, 40, 0.8, 10, "graded", 0.5),
)  # fmt: skip
GRID = (*EQUAL, *ERRATIC, *GRADED, *TEN)


def effects(cell: Cell) -> np.ndarray:
    """Log odds of the models: graded ones are found in about two of three tables."""
    tasks, items, accuracy, models, kind, between = cell
    out = np.zeros(models)
    if kind == "graded":
        se = np.sqrt(2 * (between**2 + 1 / (items * accuracy * (1 - accuracy) * 0.8)) / tasks)
        step = (stats.t.ppf(0.975, (tasks - 1) * (models - 1)) + 0.5) * se
        out[-2:] = np.array([0.5, -0.5] if models == 2 else [1.3, -1.3]) * step
    return out


class Answers:
    """Tables of one cell of the grid: their design is read once, and each is fitted as cells."""

    def __init__(self, cell: Cell) -> None:
        self.cell = tasks, items, _, models, kind, between = cell
        self.t, self.i, self.m = (a.ravel() for a in np.indices((tasks, items, models)))
        columns = {"model": self.m, "task": self.t, "item": self.t * items + self.i}
        self.frame = pd.DataFrame({name: values.astype(str) for name, values in columns.items()})
        self.fit = lt.fit_glmm(FORMULA, self.frame.assign(y=(np.arange(len(self.frame)) % 7 > 2) * 1.0))
        place = pd.MultiIndex.from_frame(self.frame[["item", "model"]])
        self.where = place.get_indexer(pd.MultiIndex.from_frame(self.fit.observed.frame[["item", "model"]].astype(str)))
        self.sd = np.full(models, between)
        self.sd[0] *= 3.0 if kind == "erratic" else 1.0

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        tasks, items, accuracy, models, *_ = self.cell
        eta = special.logit(accuracy) + effects(self.cell)[self.m] + rng.normal(0, 0.5, tasks)[self.t]
        eta = eta + rng.normal(0, 1, (tasks, items))[self.t, self.i]
        eta = eta + (self.sd * rng.normal(0, 1, (tasks, models)))[self.t, self.m]
        return (rng.random(len(eta)) < special.expit(eta)).astype(float)

    def p_values(self, rng: np.random.Generator, *, linear: bool, laplace: bool = False) -> dict[str, np.ndarray]:
        """Of all pairs by each method, step-down ("model": the model's standard errors, with the default's degrees of
        freedom); ones where no answer is wrong, or none is right.
        """
        k, y = self.cell[3], self.draw(rng)
        names = ["default", "model", "satterthwaite", "normal"]
        names += [*["linear", "binomial"] * linear, *["laplace"] * laplace]
        if not 0 < y.sum() < len(y):
            return dict.fromkeys(names, np.ones(k * (k - 1) // 2))
        fit = self.fit.refit(cells=replace(self.fit.observed, mean=y[self.where]))
        i, j = np.triu_indices(k, 1)
        of_models = np.column_stack([np.ones(k), np.eye(k)[:, 1:]])
        L = of_models[i] - of_models[j]

        def by(fit: lt.lmm.GlmmFit, df: np.ndarray) -> np.ndarray:
            se = np.sqrt(np.einsum("ij,jk,ik->i", L, fit.cov_params().to_numpy(), L))
            many = k > 2
            t = L @ fit.params.to_numpy() / se
            return adjust(t, df, method="stepdown" if many else "none", n_means=k if many else None)[0]

        alone = lt.lmm.LmmFit.df(fit, L, "satterthwaite")
        out = {"default": fit.emmeans("model").pairs().to_frame()["p_value"].to_numpy(), "model": by(fit, fit.df(L))}
        out |= {"satterthwaite": by(fit, alone), "normal": by(fit, np.inf * alone)}
        for method in ("linear", "binomial") if linear else ():
            roles = {"model": "model", "task": "task", "item": "item", "score": "y"}
            found = lt.evaluate(self.frame.assign(y=y), **roles, method=method).like
            out[method] = found.to_frame().sort_values(["left", "right"])["p_value"].fillna(1.0).to_numpy()
        if laplace:
            out["laplace"] = by(fit.refit(reml=False), np.inf * alone)
        return out


def rates(
    number: int, n: int, *, linear: bool = False, laplace: bool = False, seed: int = 31
) -> dict[str, tuple[float, float]]:
    """Of a cell of the grid by method: tables with some equal pair called different, and the unequal pairs found."""
    tables, (i, j) = Answers(GRID[number]), np.triu_indices(GRID[number][3], 1)
    equal = effects(GRID[number])[i] == effects(GRID[number])[j]
    answers = answers_of(lambda rng: tables.p_values(rng, linear=linear, laplace=laplace), n, each(seed, number))
    found = {name: np.array([answer[name] for answer in answers]) < 0.05 for name in answers[0]}
    return {
        name: (float(called[:, equal].any(axis=1).mean()), float(called[:, ~equal].mean()) if not equal.all() else 0.0)
        for name, called in found.items()
    }


def test_equal_models_are_called_different_in_five_percent_over_the_grid():
    n = 50
    share = np.mean([rates(number, n)["default"][0] for number in range(len(EQUAL))])
    assert at_most(share, n * len(EQUAL), 0.05)


def test_one_erratic_model_of_ten_makes_no_false_differences():
    """By the model's standard errors 9.1 % of 800 tables had one."""
    n = 100
    found = rates(GRID.index((8, 40, 0.8, 10, "erratic", 0.5)), n, seed=1128)
    assert at_most(found["default"][0], n, 0.05)
    assert found["model"][0] > found["default"][0]


def test_the_default_finds_nine_tenths_of_what_satterthwaites_degrees_of_freedom_find_and_the_linear_model():
    n, first = 50, len(EQUAL) + len(ERRATIC)
    found = [rates(number, n, linear=True) for number in (first, first + 1)]
    power = {name: np.mean([of_cell[name][1] for of_cell in found]) for name in found[0]}
    assert power["default"] >= 0.9 * max(power["satterthwaite"], power["linear"])
    assert power["binomial"] >= 0.9 * power["linear"]


def test_equal_models_are_called_different_in_five_percent_by_the_binomial_evaluation():
    n, cells = 50, (EQUAL.index((5, 40, 0.8, 4, "equal", 0.25)), EQUAL.index((5, 40, 0.95, 2, "equal", 0.25)))
    share = np.mean([rates(number, n, linear=True)["binomial"][0] for number in cells])
    assert at_most(share, n * len(cells), 0.05)


@pytest.mark.parametrize(("accuracy", "tasks"), [(0.7, 5), (0.95, 5), (0.95, 20)])
def test_the_interval_of_a_probability_holds_that_of_further_tasks(accuracy, tasks):
    n = 400
    found = rate_of(lambda rng: held(rng, models=2, tasks=tasks, items=40, accuracy=accuracy), n, each(2))
    assert at_least(found["held"], n, 0.93)
    assert found["outside"] == 0.0


@pytest.mark.parametrize("accuracy", [0.7, 0.95])
def test_the_interval_of_a_probability_is_of_further_tasks_where_one_has_most_answers(accuracy):
    n = 400
    assert at_least(rate_of(lambda rng: held_on_unequal(rng, accuracy=accuracy), n, each(3))["held"], n, 0.93)


@pytest.mark.parametrize("accuracy", [0.7, 0.95])
def test_the_interval_of_a_probability_on_these_tasks_holds_that_of_further_items(accuracy):
    n = 400
    found = rate_of(lambda rng: held_on_these(rng, accuracy=accuracy), n, each(5))
    assert at_least(found["held"], n, 0.95)
    assert at_least(found["difference"], n, 0.95)


def test_the_interval_of_an_expected_count_is_of_further_groups_where_exposures_are_unequal():
    n = 400
    found = rate_of(held_on_exposures, n, each(4))
    assert at_least(found["held"], n, 0.93)
    assert abs(found["ratio"] - 1.0) < 0.05  # four standard errors


@pytest.mark.parametrize("of", PROFILED)
def test_the_profile_of_an_advantage_holds_it(of):
    n, (tasks, _, advantage, _) = 100, PROFILED[of]
    found = rate_of(lambda rng: held_by_profile(rng, of=of), n, each(31, 7, tasks, int(10 * advantage)))
    assert at_least(found["held"], n, 0.95)
    assert (found["separated"] > 0.5) == (of == "separation")


@pytest.mark.parametrize("accuracy", [0.7, 0.95])
def test_two_equal_models_on_five_tasks_differ_in_five_percent(accuracy):
    n = 400
    found = rate_of(lambda rng: verdicts(rng, models=2, tasks=5, items=40, accuracy=accuracy), n, each(1))
    assert at_most(found["default"], n, 0.05)
    assert at_most(found["probability"], n, 0.05)
    assert found["unsettled"] == 0.0


if __name__ == "__main__":  # tables of each cell; or with the design of one cell, of two equal models
    n, *parts = sys.argv[1:]
    for number, cell in enumerate(GRID) if not parts else ():
        print(cell, rates(number, int(n), linear=cell[4] != "equal", laplace=cell[:4] == (5, 40, 0.5, 2)), flush=True)
    if parts:
        design = {name: float(v) if "." in v else int(v) for name, v in (part.split("=") for part in parts)}
        print(design, rate_of(lambda rng: verdicts(rng, **design), int(n), each(1)))
