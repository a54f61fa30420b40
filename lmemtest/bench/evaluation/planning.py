"""How many families, tasks, items and epochs: `lt.plan` with the variances of an evaluation, in its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lmemtest.bench.power.closed_form import smallest_effect
from lmemtest.bench.power.draw import StudyDesign
from lmemtest.bench.power.plan import Plan, plan

_MANY = 10_000  # tasks whose critical value is that of the normal distribution


def planned(
    variances: Mapping[str, float],
    design: Mapping[str, int],
    *,
    n_models: int,
    fixed_tasks: bool,
    effect: float | None,
    power: float,
    alpha: float,
    **limits: Any,
) -> Plan:
    """The plan from variances by source; with fixed tasks the advantages on them are no part of the error."""
    names = tuple(design)
    of_stage = {"task": 0.0 if fixed_tasks else variances["task:model"], "item": variances["item:model"]}
    of_stage["family"] = variances.get("family:model", 0.0)
    sds = {name: {**of_stage, "epoch": variances["epoch"]}[name] ** 0.5 for name in names}
    if fixed_tasks:
        limits["fixed"] = {"task": design["task"], **(limits["fixed"] or {})}
        if effect is not None:
            test = StudyDesign(n_algorithms=n_models, n_benchmarks=_MANY, n_seeds=1)
            limits["target"] = effect / smallest_effect(power, 1.0, test.df, test.critical(alpha, "tukey"))
            effect = None
    current = {**dict(design), **{name: n for name, n in (limits["fixed"] or {}).items() if name in design}}
    found = plan(sds, stages=names, n_algorithms=n_models, effect=effect, power=power, alpha=alpha, current=current,
                 **limits)  # fmt: skip
    anew = "Families and their tasks are" if "family" in names else "Tasks are"
    where = "Tasks are these and stay" if fixed_tasks else f"{anew} drawn anew"
    notes = (
        "The standard deviations are those of this evaluation, taken as known.",
        f"{where}; all models answer the same items, so what they share of tasks and items cancels.",
    )
    return replace(found, noun="model", notes=notes)
