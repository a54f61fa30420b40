"""What ends a run of another tool when a comparison with a baseline is decided: inspect_ai's early stopping, Optuna's
callback.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal

import pandas as pd

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.evaluation_samples import GRADES
from lmemtest.bench.looks.monitor import Monitoring, monitor
from lmemtest.bench.looks.schedule import STOP, planned_sizes
from lmemtest.core.validate import check_fraction, check_positive_int, is_finite, several
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.sequential.spending import check_spending


class StopWhenDecided:
    """Stop when a difference from a baseline is shown: an evaluation of inspect_ai, or a study of Optuna.

    For inspect_ai it is ``Task(..., early_stopping=stopping)``: items are the units, and their data set is the plan.

    For Optuna it is ``study.optimize(objective, callbacks=[stopping])``, of a study whose trials run one algorithm on
    one benchmark each, named by the parameter or user attribute "benchmark", the baseline's benchmarks being the plan
    (`GridSampler`). Trials whose settings earlier trials chose have no level: their scores chose them.

    Parameters
    ----------
    baseline : mapping of sample id to float
        Scores of the model to compare with, by the items that both run on; 0 to 1 as inspect_ai's grades are counted.
        For Optuna, of the algorithm to compare with by benchmark.
    looks : int or sequence of int
        As for `monitor`, in items; the maximum is the number of items of the task, or of benchmarks of the baseline.
    scorer : str, optional
        Which of several scorers counts; by default the first.
    alpha, spending
        As for `monitor`.

    Attributes
    ----------
    found : Monitoring or None
        The last look.

    Raises
    ------
    ArgumentError
        If an argument breaks its rule.
    DataError
        If items of the task have no score in the baseline, a score is no number, or trials repeat a benchmark.

    Notes
    -----
    Items count in the order of the data set (trials in that of their numbers), and those behind one that still runs do
    not count yet: else fast answers would come first, and these may be easy ones. An item whose sample (a trial that)
    failed is never complete, and looks end there. At
    a look where all differences are the same, nothing is decided. Use a new object for each evaluation.

    Examples
    --------
    >>> import lmemtest as lt
    >>> stopping = lt.StopWhenDecided({"a": 1.0, "b": 0.0}, looks=50)
    >>> # inspect_ai.Task(dataset=..., solver=..., scorer=..., early_stopping=stopping)
    >>> # optuna_study.optimize(objective, callbacks=[stopping])
    """

    def __init__(
        self,
        baseline: Mapping[Any, float],
        *,
        looks: int | Sequence[int],
        scorer: str | None = None,
        alpha: float = 0.05,
        spending: str = "obrien_fleming",
    ) -> None:
        if not isinstance(baseline, Mapping) or not all(map(is_finite, baseline.values())):
            raise ArgumentError(f"baseline must map ids of samples to finite scores, got {baseline!r:.60}.")
        if scorer is not None and not isinstance(scorer, str):
            raise ArgumentError(f"scorer must be the name of a scorer of the task, got {scorer!r:.60}.")
        self.baseline, self.scorer = dict(baseline), scorer
        self.looks = planned_sizes(looks, None) if several(looks) else check_positive_int(looks, "looks")
        self.options: dict[str, Any] = {
            "alpha": check_fraction(alpha, "alpha"),
            "spending": check_spending(spending, planned=True),
        }
        self.found: Monitoring | None = None
        self._items: list[Any] = []
        self._direction: Literal["minimize", "maximize"] = "maximize"
        self._planned: tuple[int, ...] = ()
        self._epochs, self._looked = 1, 0
        self._scores: dict[Any, dict[int, float]] = defaultdict(dict)

    async def start_task(self, task: Any, samples: Sequence[Any], epochs: int) -> str:  # noqa: ARG002
        """Take the items of the data set, all of which the baseline must have."""
        self._items, self._epochs = [sample.id for sample in samples], epochs
        if missing := [str(item) for item in self._items if item not in self.baseline]:
            raise DataError(f"baseline has no score of {listed(missing)}. Run it on the same items, or leave them out.")
        self._planned = planned_sizes(self.looks, len(self._items))
        return "lmemtest"

    def __call__(self, study: Any, trial: Any) -> None:  # noqa: ARG002
        """Look at the trials of an Optuna study, and stop it once the comparison is decided."""
        trials = sorted(study.get_trials(deepcopy=False), key=lambda trial: trial.number)
        done = list(takewhile(lambda trial: trial.state.name == "COMPLETE", trials))
        items = [{**trial.user_attrs, **trial.params}.get("benchmark") for trial in done]
        wrong = [item for item in items if item not in self.baseline or items.count(item) > 1]
        if wrong:
            raise DataError(
                "trials must run on one benchmark of the baseline each, once, named by the parameter or user attribute "
                f"'benchmark': got {listed(map(repr, dict.fromkeys(wrong)))}."
            )
        self._items = items
        self._direction = "maximize" if study.direction.name == "MAXIMIZE" else "minimize"
        self._planned = planned_sizes(self.looks, len(self.baseline))
        self._scores.update({item: {1: trial.value} for item, trial in zip(items, done, strict=True)})
        self._look()
        if self._decided:
            study.stop()

    @property
    def _decided(self) -> bool:
        return self.found is not None and self.found.decision == STOP

    async def schedule_sample(self, id: Any, epoch: int) -> Any:
        """The directive to leave a sample out, once the comparison is decided."""
        if self.found is None or not self._decided:
            return None
        from inspect_ai.util import EarlyStop

        return EarlyStop(id=id, epoch=epoch, reason=self.found.sentences()[1])

    async def complete_sample(self, id: Any, epoch: int, scores: Mapping[str, Any]) -> None:
        """Note the score, and look if a planned number of items is complete."""
        scorer = self.scorer or next(iter(scores), None)
        if scorer is None or scorer not in scores:
            names = listed(map(repr, scores)) or "of which there are none"
            raise DataError(f"scorer must be one of the evaluation's, {names}: got {scorer!r}.")
        value = scores[scorer].score.value
        value = GRADES.get(value, value) if isinstance(value, str) else value
        if not isinstance(value, bool) and not is_finite(value):
            raise DataError(f"the score of {id!r} must be a number, or C, P, I or N, got {value!r:.60}. Name scorer=.")
        self._scores[id][epoch] = float(value)
        self._look()

    async def complete_task(self) -> dict[str, Any]:
        """What was decided, for the log of the evaluation."""
        if self.found is None:
            return {"looks": 0}
        return {"looks": len(self.found.looks), "items": self.found.sizes[-1], "decision": self.found.decision}

    def _look(self) -> None:
        whole = list(takewhile(lambda item: len(self._scores.get(item, ())) == self._epochs, self._items))
        size = max((n for n in self._planned if self._looked < n <= len(whole)), default=0)
        if not size or self._decided:
            return
        self._looked, mine = size, whole[:size]
        scores = [sum(self._scores[item].values()) / self._epochs for item in mine]
        scores += [self.baseline[item] for item in mine]
        models = ["this one"] * size + ["the baseline"] * size
        table = pd.DataFrame({"model": models, "item": [str(item) for item in mine] * 2, "score": scores})
        runs = Runs(table, score="score", direction=self._direction, algorithm="model", benchmark="item")
        try:
            self.found = monitor(
                runs, maximum=self._planned[-1], looks=self._planned, earlier=self.found, **self.options
            )
        except DesignError:  # all differences are the same
            return
