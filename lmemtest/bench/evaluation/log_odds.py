"""Log odds of right answers by model and task: empirical ones, and those without their bias.

Of k right answers of n the empirical logit z = log((k + 1/2) / (n - k + 1/2)) is defined where all are right, and its
mean is the log odds but where few errors are expected: half an error is added to all, so that odds are drawn towards
those of few errors, and odds ratios of models towards one. How much depends on the log odds of the tasks. They are
taken for normal, with a mean of the model and one standard deviation for all, and k for binomial:

    M(mu, tau) = E[E[z | n, mu + tau u]],   u normal (0, 1);

mu of each model and tau are those at which M is the mean of its z, and the variance of z that of the data (the method
of moments: an indirect inference, Gourieroux, Monfort & Renault 1993, J. Appl. Econometrics 8, S85-S118). The means of
z are moved to mu, and what remains is divided by the mean of dM / dmu, for all models by the same number, so that what
they share of a task still cancels from differences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, log_expit

from lmemtest.bench.evaluation.answers import answered, task_means
from lmemtest.core.quadrature import normal_rule
from lmemtest.core.rounding import tolerance

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array

_GRID = np.linspace(-12.0, 12.0, 481)  # of log odds
_NODES = 21  # of the mean over tasks
_MOST = 4.0  # standard deviation of log odds of tasks
_FARTHEST = 9.0  # mean log odds that some thousands of answers tell from infinite ones


def empirical_logits(blocks: Blocks) -> tuple[Array, Array]:
    """Of the right answers by model and task, and their binomial variances, ``(n_models, n_tasks)``; NaN without."""
    n = answered(blocks)
    right = np.where(n > 0, task_means(blocks) * n, np.nan) + 0.5
    wrong = n + 1.0 - right
    return np.log(right / wrong), 1.0 / right + 1.0 / wrong


def same_ratios(blocks: Blocks) -> bool:
    """Whether every two models have the same odds ratio on all tasks, as those with as many errors on each do."""
    z = empirical_logits(blocks)[0]
    apart = z - z.mean(axis=0) - z.mean(axis=1, keepdims=True) + z.mean()
    return bool(np.abs(apart).max() <= tolerance(z))


def without_errors(blocks: Blocks) -> int:
    """Pairs of model and task that have no wrong, or no right, answer."""
    of_tasks = task_means(blocks)
    return int(((of_tasks == 0.0) | (of_tasks == 1.0)).sum())


def unbiased_logits(blocks: Blocks) -> tuple[Array, float, float | None]:
    """Empirical logits without their bias, by how much that stretches their differences, and the standard deviation of
    tasks that it takes.

    None, a stretch of one and the logits as they are, where every task has a wrong and a right answer of every model
    (the bias is small there); of repeated attempts, which are no binomial counts; and of a model without any error.
    """
    from scipy.optimize import brentq

    z, n = empirical_logits(blocks)[0], answered(blocks)
    if not without_errors(blocks) or (n == 0).any() or z.shape[1] < 2 or blocks.n_runs.max() > 1:
        return z, 1.0, None
    sizes, share = np.unique(n, axis=1, return_counts=True)
    of_size = {int(size): _moments(int(size)) for size in np.unique(n)}
    centre, scatter = z.mean(axis=1), float(z.var(axis=1, ddof=1).mean())

    x, weight = normal_rule(_NODES)

    def at(tau: float) -> tuple[Array, Array, Array]:
        """Of each model: mu, the slope of M there, and the variance of z."""
        nodes = _GRID[:, None] + tau * x
        by_size = {size: [np.interp(nodes, _GRID, part) @ weight for part in own] for size, own in of_size.items()}
        first, second = (
            np.array([sum(c * by_size[int(size)][power] for c, size in zip(share, row, strict=True)) for row in sizes])
            / share.sum()
            for power in (0, 1)
        )
        mu = np.array([np.interp(c, own, _GRID) for c, own in zip(centre, first, strict=True)])
        slope, variance = (
            np.array([np.interp(m, _GRID, own) for m, own in zip(mu, parts, strict=True)])
            for parts in (np.gradient(first, _GRID, axis=1), second - first**2)
        )
        return mu, slope, variance

    excess = [float(at(tau)[2].mean()) - scatter for tau in (0.0, _MOST)]
    tau = 0.0 if excess[0] >= 0.0 else _MOST
    if excess[0] < 0.0 < excess[1]:
        tau = float(brentq(lambda tau: float(at(tau)[2].mean()) - scatter, 0.0, _MOST))
    mu, slope, _ = at(tau)
    if np.abs(mu).max() > _FARTHEST:
        return z, 1.0, None
    stretch = 1.0 / float(slope.mean())
    return mu[:, None] + stretch * (z - centre[:, None]), stretch, tau


def _moments(n: int) -> tuple[Array, Array]:
    """Mean of z and of z squared, by the log odds of the grid."""
    k = np.arange(n + 1.0)
    z, ways = np.log((k + 0.5) / (n - k + 0.5)), gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    both = np.stack([z, z**2], axis=1)
    found = [np.exp(ways + k * log_expit(logit) + (n - k) * log_expit(-logit)) @ both for logit in _GRID]
    first, second = np.array(found).T
    return first, second
