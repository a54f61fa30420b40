"""Pseudo-likelihood: a generalised mixed model as a sequence of linear ones whose residual variance is known.

At a linear predictor ``eta`` the answers of a cell, ``n`` with the sum ``s`` and the mean ``mu``, are about linear in
it:

    z = eta + (s - n mu) / (n mu'),     w = n mu'^2 / V(mu),

have the mean ``eta`` and the variance ``1 / w``. A linear mixed model of ``z`` with these weights and the residual
variance 1, by REML or ML, gives the next variances, effects and ``eta``, until nothing moves (Schall 1991,
doi:10.1093/biomet/78.4.719; Breslow & Clayton 1993, doi:10.1080/01621459.1993.10594284; Wolfinger & O'Connell 1993,
doi:10.1080/00949659308811554, whose RSPL it is by REML). Anderson's acceleration takes the last few steps for a linear
map and goes to its fixed point (Walker & Ni 2011, doi:10.1137/10078356X).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.optimize import Optimum, optimise
from lmemtest.lmm.engine.problem import Problem, build_problem
from lmemtest.lmm.engine.structure import RandomTerm
from lmemtest.lmm.engine.sweep import conditional_modes
from lmemtest.lmm.families import LARGEST, Family

# Change of the predictor, in standard errors of a cell's working score, at which nothing moves any more; most steps.
_SETTLED, MOST_STEPS = 1e-8, 200
# Growth of a step from which the steps before it are forgotten, and how many of them are remembered.
_GROWS, _MEMORY = 2.0, 5
# Decrement of the search of a step, per square of the length of the step before: a tenth of what still moves.
_COARSE, _FIRST_LENGTH = 1e-2, 1.0


@dataclass(frozen=True)
class Answers:
    """What is observed in the cells of a model, ``(n_cells,)`` each."""

    total: Array  # successes, or the sum of counts
    n: Array  # answers (trials), or rows


@dataclass(frozen=True)
class Working:
    """The linear model at the end, and how the sequence ended."""

    eta: Array  # (n_cells,) linear predictor at which it was made, the offset in it
    z: Array  # (n_cells,) working scores
    weight: Array  # (n_cells,) their precision
    problem: Problem
    optimum: Optimum
    steps: int
    settled: bool


def starting_predictor(answers: Answers, family: Family, offset: Array) -> Array:
    """A predictor inside the domain of every cell, half an answer towards the mean of all."""
    mean = answers.total.sum() / answers.n.sum()
    return np.clip(family.predictor((answers.total + 0.5 * mean) / (answers.n + 0.5)), -LARGEST, LARGEST) + 0.0 * offset


def working_scores(eta: Array, answers: Answers, family: Family) -> tuple[Array, Array]:
    """Working scores and their precision, ``(n_cells,)`` each."""
    slope = np.maximum(family.slope(eta), np.finfo(float).tiny)
    weight = family.information(eta, answers.n)
    return eta + (answers.total / answers.n - family.mean(eta)) / slope, weight


def linearised(
    terms: Sequence[RandomTerm],
    X: Array,
    rows: Index,
    offset: Array,
    answers: Answers,
    family: Family,
    *,
    eta: Array,
    reml: bool,
) -> Problem:
    """The linear model of the working scores at a predictor.

    Within cells the scores are taken to scatter as much as the known variance says: that moves the level of the
    likelihood alone, which is none of answers.
    """
    z, weight = working_scores(eta, answers, family)
    each = weight / answers.n
    return build_problem(
        terms, X, z - offset, rows=rows, n=answers.n, weight=each, ss=answers.n / each, reml=reml, residual_variance=1.0
    )


def explained(problem: Problem, at: Criterion) -> Array:
    """``X b + Z u`` of the cells at a point of the search, without an offset."""
    random = sum(
        (
            block.times(u)
            for block, u in zip(at.system.blocks, conditional_modes(at.system, at.sweep, at.v), strict=True)
        ),
        start=np.zeros(1),
    )
    return problem.y_scale * random


def _accelerated(past: Sequence[tuple[Array, Array]], root: Array) -> Array:
    """The next predictor from the last ones and their steps, ``(n_cells,)`` each, by weighted least squares."""
    eta, step = past[-1]
    if len(past) == 1:
        return eta + step
    before = np.column_stack([eta - other for other, _ in past[:-1]])
    change = np.column_stack([step - other for _, other in past[:-1]])
    share = np.linalg.lstsq(root[:, None] * change, root * step, rcond=1e-6)[0]
    return np.asarray(eta + step - (before + change) @ share)


def pseudo_likelihood(
    terms: Sequence[RandomTerm],
    X: Array,
    rows: Index,
    offset: Array,
    answers: Answers,
    family: Family,
    *,
    reml: bool,
    theta: Array | None = None,
) -> Working:
    """The fixed point from the data, or from a theta (on the user's scale).

    ``X`` holds distinct rows, ``rows`` that of each cell.
    """
    eta = starting_predictor(answers, family, offset)
    past: list[tuple[Array, Array]] = []
    before, steps, length = np.inf, 0, _FIRST_LENGTH
    while steps < MOST_STEPS and length >= _SETTLED:
        steps += 1
        z, weight = working_scores(eta, answers, family)
        problem = linearised(terms, X, rows, offset, answers, family, eta=eta, reml=reml)
        start = None if theta is None else problem.point(problem.to_white(theta))
        optimum = optimise(problem, start=start, restarts=0, coarse=_COARSE * min(length, _FIRST_LENGTH) ** 2)
        theta = problem.to_user(optimum.theta)
        at = optimum.criterion
        fixed = X[:, problem.kept] @ problem.fixed_effects(at)[0]
        there = np.clip(fixed[rows] + explained(problem, at) + offset, -LARGEST, LARGEST)
        length = float(np.abs(np.sqrt(weight) * (there - eta)).max())
        if length > _GROWS * before:  # what the last steps have learned is of another place
            past.clear()
        past = [*past[-_MEMORY:], (eta, there - eta)]
        eta, before = np.clip(_accelerated(past, np.sqrt(weight)), -LARGEST, LARGEST), length
    return Working(eta, z, weight, problem, optimum, steps, length < _SETTLED)
