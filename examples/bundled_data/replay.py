"""Replay optimisers on a table of trained configurations.

Three optimisers, each with and without a prior: random search (RS), Hyperband (HB) and Optuna's
tree-structured Parzen estimator (TPE).  An evaluation looks up a trained (configuration, fidelity) pair and
costs its fidelity, so one unit of budget is one full training run.  Nothing resumes: a Hyperband rung pays
its full fidelity.

A run is identified by (benchmark, prior, seed).  Its *draw order*, a random permutation of the
configurations, is shared by all algorithms and by all data sets of a model family, as the initial design of a
seeded sampler is; the two priors have independent orders, so the rows of algorithms that ignore the prior are
true replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from models import FIDELITIES, FULL

BUDGETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
PRIORS = ("good", "bad")
ETA = 3
PRIOR_SPREAD = 0.2  # standard deviation of the prior in each dimension of the unit cube
PRIOR_RANK = 1 / 26  # expected quantile of the best (worst) of 25 random configurations
TPE_STARTUP = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The trained configurations of one benchmark."""

    benchmark: str
    model: str
    dataset: str
    points: np.ndarray  # (n, d) in the unit cube
    valid: np.ndarray  # (n, 4) validation loss by fidelity
    test: np.ndarray  # (n, 4)

    @property
    def n(self) -> int:
        """Number of configurations."""
        return len(self.points)


Evaluation = tuple[int, int]  # configuration, fidelity level
Draw = Callable[[set[int]], int]
Tell = Callable[[], Iterator[Evaluation]]


def prior_centre(table: Table, prior: str) -> int:
    """Return the configuration that the prior believes in: 1/26 of the table from the best or the worst."""
    order = np.lexsort((np.arange(table.n), table.valid[:, -1]))
    rank = round(table.n * PRIOR_RANK)
    return int(order[rank - 1] if prior == "good" else order[-rank])


def prior_weights(table: Table, centre: int) -> np.ndarray:
    """Return the prior on the table: weights of a Gaussian around its centre in the unit cube, of sum 1."""
    squared = np.sum((table.points - table.points[centre]) ** 2, axis=1)
    weights = np.exp(-squared / (2 * PRIOR_SPREAD**2))
    return weights / weights.sum()


def stream(*key: int | str) -> np.random.Generator:
    """Return a generator that depends on the key alone, so that any part can be replayed by itself."""
    return np.random.default_rng(
        [part if isinstance(part, int) else int.from_bytes(part.encode(), "big") for part in key]
    )


def replay(table: Table, algorithm: str, prior: str, seed: int) -> list[dict[str, float]]:
    """Run one algorithm to the largest budget; one row per budget with the losses of the incumbent."""
    optimiser, _, suffix = algorithm.partition("+")
    order = [int(i) for i in stream("order", table.model, prior, seed).permutation(table.n)]
    centre = prior_centre(table, prior) if suffix else None
    draw = _drawer(table, order, centre, stream("prior", table.benchmark, prior, seed))
    if optimiser == "TPE":
        sampler_seed = int(stream("tpe", table.benchmark, prior, seed).integers(2**31))
        evaluations = _tpe(table, draw, sampler_seed)
    else:
        evaluations = {"RS": _random_search, "HB": _hyperband}[optimiser](table, draw)
    return _best_so_far(table, evaluations)


ALGORITHMS = ("HB", "HB+prior", "RS", "RS+prior", "TPE", "TPE+prior")


def _drawer(table: Table, order: list[int], centre: int | None, rng: np.random.Generator) -> Draw:
    """Return a function that draws a configuration not yet used.

    Without a prior the next one of the draw order.  With a prior, first its centre; then a fair coin decides
    between the prior and the draw order, which bounds what a wrong prior can cost.
    """

    def from_order(used: set[int]) -> int:
        return next(i for i in order if i not in used)

    if centre is None:
        return from_order
    weights = prior_weights(table, centre)

    def from_mixture(used: set[int]) -> int:
        if not used:
            return centre
        if rng.random() < 0.5:
            return from_order(used)
        left = weights.copy()
        left[list(used)] = 0.0
        return int(rng.choice(table.n, p=left / left.sum()))

    return from_mixture


def _random_search(table: Table, draw: Draw) -> Iterator[Evaluation]:
    used: set[int] = set()
    while len(used) < table.n:
        config = draw(used)
        used.add(config)
        yield config, len(FIDELITIES) - 1


def _hyperband(table: Table, draw: Draw) -> Iterator[Evaluation]:
    """Hyperband: eta 3, brackets of 27, 12, 6 and 4 configurations, repeated with new configurations."""
    used: set[int] = set()
    last = len(FIDELITIES) - 1
    while True:
        for first in range(last + 1):
            halvings = last - first
            size = -(-(last + 1) * ETA**halvings // (halvings + 1))
            rung = []
            for _ in range(size):
                rung.append(draw(used))
                used.add(rung[-1])
            for level in range(first, last + 1):
                for config in rung:
                    yield config, level
                rung = sorted(rung, key=lambda i: table.valid[i, level])[: len(rung) // ETA]


def _tpe(table: Table, draw: Draw, seed: int) -> Iterator[Evaluation]:
    """Optuna's TPE in the unit cube; each suggestion is moved to the nearest configuration not yet evaluated.

    The study is told the coordinates of that configuration, not those suggested: it learns from what was run.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {f"x{j}": optuna.distributions.FloatDistribution(0.0, 1.0) for j in range(table.points.shape[1])}
    sampler = optuna.samplers.TPESampler(n_startup_trials=TPE_STARTUP, seed=seed)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    used: set[int] = set()
    last = len(FIDELITIES) - 1
    while len(used) < table.n:
        if len(used) < TPE_STARTUP:
            config = draw(used)
        else:
            asked = study.ask(space)
            suggested = np.array([asked.params[name] for name in space])
            distance = np.sum((table.points - suggested) ** 2, axis=1)
            distance[list(used)] = np.inf
            config = int(distance.argmin())
            study.tell(asked, state=optuna.trial.TrialState.FAIL)
        used.add(config)
        yield config, last
        params = {name: float(table.points[config, j]) for j, name in enumerate(space)}
        value = float(table.valid[config, last])
        study.add_trial(optuna.trial.create_trial(params=params, distributions=space, value=value))


def _best_so_far(table: Table, evaluations: Iterator[Evaluation]) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = []
    spent, best = 0, (np.inf, np.inf)  # budget is counted in 27ths, exactly
    for config, level in evaluations:
        spent += FIDELITIES[level]
        while len(rows) < len(BUDGETS) and spent > BUDGETS[len(rows)] * FULL:
            rows.append({"budget": BUDGETS[len(rows)], "loss": best[0], "test_loss": best[1]})
        if len(rows) == len(BUDGETS):
            return rows
        if table.valid[config, level] < best[0]:
            best = (float(table.valid[config, level]), float(table.test[config, level]))
    raise RuntimeError(f"{table.benchmark} has too few configurations for a budget of {BUDGETS[-1]}")
