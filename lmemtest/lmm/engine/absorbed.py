"""Runs of algorithms on benchmarks with seeds, and a fixed mean for every algorithm on every benchmark.

With ``C`` the indicators of these cells and ``M = I - C (C'C)^-1 C'`` the restricted likelihood of ``C b + Z u + e`` is
the likelihood of a model of ``M y`` on ``M Z`` with as many rows fewer as there are cells, times ``|C'C|^-1/2``: a mean
of its own for every cell is centring within cells, and no column of ``C`` is ever made. Random are the seeds of each
benchmark (``Z_1``), those of each algorithm (``Z_2``), or both; the former are eliminated benchmark by benchmark.

Where every algorithm has as many runs with every seed on every benchmark, ``M`` takes the mean over the seeds out of
the cells. A rotation of the ``S`` seeds leaves ``S - 1`` that are alike and independent (`products.rotated`), each
with its own effects on the benchmarks and of the algorithms: what is eliminated is as small with thousands of seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmemtest.core.arrays import Array, Index
from lmemtest.errors import DesignError
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.cross import DenseCross
from lmemtest.lmm.engine.problem import Problem
from lmemtest.lmm.engine.products import Stage, System, shared
from lmemtest.lmm.engine.structure import Block, Member, RandomTerm, Shape

# Seeds of algorithms from which a balanced table is taken seed by seed.
_FEW_OWN = 1_000


def absorbed_problem(
    y: Array, algorithm: Index, benchmark: Index, seed: Index, terms: Sequence[RandomTerm], *, paired: bool
) -> tuple[Problem, float]:
    """The problem without cell means, and what they add to its deviance.

    ``terms`` holds at most one term, whose levels are the seeds, or the algorithms' own seeds (``seed * algorithms +
    algorithm``); ``paired`` adds seeds within benchmarks before it.
    """
    A, B, S = (int(codes.max()) + 1 for codes in (algorithm, benchmark, seed))
    cell = benchmark * A + algorithm
    rows = np.bincount(cell, minlength=A * B)
    n = len(y) - int(np.count_nonzero(rows))
    mean = np.bincount(cell, y, A * B) / np.maximum(rows, 1)
    centred = y - mean[cell]
    total = float(centred @ centred)
    if n < 1 or not total > 1e-20 * float((y - y.mean()) @ (y - y.mean())):
        raise DesignError(
            "the fixed part explains the score exactly (its residuals are zero), so there is no "
            "variation to model. Check for a constant score."
        )
    y_scale = float(np.sqrt(total / n))
    white = [th.whiten(term, np.ones(len(y))) for term in terms]
    scale = np.ones(A)  # of a column of ones of each algorithm, whitened
    for term, _ in white:
        scale[algorithm] = term.basis.sum(axis=1)  # one column is not zero
    counts = np.bincount(cell * S + seed, minlength=A * B * S).reshape(B, A, S).astype(float)
    if A * S > _FEW_OWN and counts.min() == counts.max() > 0.0 and (paired or terms):
        of_seeds = np.bincount(cell * S + seed, centred / y_scale, A * B * S).astype(float).reshape(B, A, S)
        full = bool(terms) and terms[0].k > 1
        system = _of_alike_seeds(
            of_seeds, float(counts.flat[0]), scale, paired, bool(terms), full, total / y_scale**2, n
        )
        return _problem(system, white, B * S * paired, y_scale), float(np.log(rows[rows > 0]).sum())
    sums = np.bincount(cell * S + seed, centred / y_scale, A * B * S).reshape(B, A, S)
    shares = counts / np.maximum(rows, 1).reshape(B, A, 1)
    tail = [
        Block((Member(int(paired), term.basis, 0, None, 0),), q=term.n_levels, codes=term.codes) for term, _ in white
    ]
    t = A * S if terms else 0
    remainder = np.zeros((t + 1, t + 1))
    remainder[-1, -1] = total / y_scale**2
    if terms:
        within_seeds = np.zeros((S, A, S, A))
        for a in range(A):
            inside = np.diag(counts[:, a].sum(axis=0)) - counts[:, a].T @ shares[:, a]
            within_seeds[:, a, :, a] = scale[a] ** 2 * inside
        remainder[:-1, :-1] = within_seeds.reshape(t, t)
        remainder[:-1, -1] = remainder[-1, :-1] = (sums.sum(axis=0) * scale[:, None]).T.ravel()
    chain = []
    if paired:
        within = -np.swapaxes(counts, 1, 2) @ shares
        within[:, np.arange(S), np.arange(S)] += counts.sum(axis=1)
        across = np.zeros((B, S, t + 1))
        across[:, :, -1] = sums.sum(axis=1)
        if terms:
            with_own = -np.einsum("bas,baz->bsza", counts, shares)
            with_own[:, np.arange(S), np.arange(S), :] += np.swapaxes(counts, 1, 2)
            across[:, :, :-1] = (with_own * scale).reshape(B, S, t)
        levels = np.arange(B * S).reshape(B, S)
        block = Block((Member(0, np.ones((len(y), 1)), seed, levels, 0),), q=B, codes=benchmark)
        chain.append(shared(Stage(block, within, {}, {}, {}, DenseCross(across))))
    system = System((tuple(chain), tuple(tail), remainder), p=0, n_rows=n, ss_within=0.0, sum_log_w=0.0)
    return _problem(system, white, B * S * paired, y_scale), float(np.log(rows[rows > 0]).sum())


def _problem(system: System, white: Sequence[tuple[RandomTerm, Array]], n_paired: int, y_scale: float) -> Problem:
    """The problem of a system with ``n_paired`` seeds within benchmarks, if any, before the other term."""
    shapes, R, n_levels = [term.shape for term, _ in white], [R for _, R in white], [term.n_levels for term, _ in white]
    if n_paired:
        shapes, R, n_levels = [Shape(1), *shapes], [np.eye(1), *R], [n_paired, *n_levels]
    return Problem(
        system=system,
        reml=False,
        shapes=tuple(shapes),
        R=tuple(R),
        kept=np.empty(0, dtype=np.intp),
        RX=np.empty((0, 0)),
        offset=np.empty(0),
        y_scale=y_scale,
        n_levels=tuple(n_levels),
    )


def _of_alike_seeds(
    sums: Array, times: float, scale: Array, paired: bool, with_residual: bool, full: bool, total: float, n: int
) -> System:
    """The system of a balanced table, from sums of centred scores (benchmarks, algorithms, seeds) of ``times`` runs."""
    B, A, S = sums.shape
    members, columns, start = [], [], 0
    if paired:
        members.append(Member(0, np.ones((1, 1)), 0, np.arange(B)[None], 0))
        columns.append(np.repeat(np.eye(B), A, axis=1))
        start = B
    if with_residual:
        levels = None if full else np.arange(A)[None]
        members.append(Member(int(paired), np.ones((1, A if full else 1)), 0, levels, start))
        columns.append(np.tile(np.diag(scale), B))
    Z = np.concatenate(columns)  # (K, cells): the columns of a seed
    of_y = Z @ sums.reshape(B * A, S)
    K = len(Z)
    block = Block(tuple(members), q=1, codes=np.zeros(1, dtype=np.intp))
    stage = Stage(
        block,
        A=times * (Z @ Z.T)[None],
        E={},
        parent={},
        indicator={},
        V=DenseCross(np.zeros((1, K, 1))),
        copies=S - 1,
        S=(of_y @ of_y.T)[None],
    )
    return System(((stage,), (), np.array([[total]])), p=0, n_rows=n, ss_within=0.0, sum_log_w=0.0)
