"""inspect_ai's early stopping: an evaluation ends when its model is shown to differ from another one on such items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import pandas as pd

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.evaluation_samples import GRADES
from lmemtest.bench.looks.monitor import Monitoring, monitor
from lmemtest.bench.looks.schedule import SPENDING_NAMES, STOP, planned_sizes
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int, is_finite, several
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError, DesignError


class StopWhenDecided:
    """Stop an evaluation of inspect_ai when its model differs from a baseline: ``Task(..., early_stopping=...)``.

    Parameters
    ----------
    baseline : mapping of sample id to float
        Scores of the model to compare with, by the items that both run on; 0 to 1 as inspect_ai's grades are counted.
    looks : int or sequence of int
        As for `monitor`, in items; the maximum is the number of items of the task.
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
        If items of the task have no score in the baseline, or a score is no number.

    Notes
    -----
    Items count in the order of the data set, and those behind one that still runs do not count yet: else fast answers
    would come first, and these may be easy ones. An item whose sample failed is never complete, and looks end there. At
    a look where all differences are the same, nothing is decided. Use a new object for each evaluation.

    Examples
    --------
    >>> import lmemtest as lt
    >>> stopping = lt.StopWhenDecided({"a": 1.0, "b": 0.0}, looks=50)
    >>> # inspect_ai.Task(dataset=..., solver=..., scorer=..., early_stopping=stopping)
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
        check_choice(spending, "spending", tuple(SPENDING_NAMES))
        self.options: dict[str, Any] = {"alpha": check_fraction(alpha, "alpha"), "spending": spending}
        self.found: Monitoring | None = None
        self._items: list[Any] = []
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

    async def schedule_sample(self, id: Any, epoch: int) -> Any:
        """The directive to leave a sample out, once the comparison is decided."""
        if self.found is None or self.found.decision != STOP:
            return None
        from inspect_ai.util import EarlyStop

        return EarlyStop(id=id, epoch=epoch, reason=self.found.sentences()[1])

    async def complete_sample(self, id: Any, epoch: int, scores: Mapping[str, Any]) -> None:
        """Note the score, and look if a planned number of items is complete."""
        scorer = self.scorer or next(iter(scores), None)
        if scorer is None or scorer not in scores:
            known = listed(map(repr, scores)) or "of which there are none"
            raise DataError(f"scorer must be one of the evaluation's, {known}: got {scorer!r}.")
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
        if not size or (self.found is not None and self.found.decision == STOP):
            return
        self._looked, mine = size, whole[:size]
        scores = [sum(self._scores[item].values()) / self._epochs for item in mine]
        scores += [self.baseline[item] for item in mine]
        models = ["this model"] * size + ["the baseline"] * size
        table = pd.DataFrame({"model": models, "item": [str(item) for item in mine] * 2, "score": scores})
        runs = Runs(table, score="score", direction="maximize", algorithm="model", benchmark="item")
        try:
            self.found = monitor(
                runs, maximum=len(self._items), looks=self._planned, earlier=self.found, **self.options
            )
        except DesignError:  # all differences are the same
            return
