"""What leaves the study and changes a decision is named, and nothing else is."""

import numpy as np
import pandas as pd
import pytest

from lmemtest.bench.data.blocks import Blocks
from lmemtest.bench.ranking.stability import stability_of
from lmemtest.errors import DesignError
from lmemtest.lmm.means.decisions import decisions_of


def blocks(scores, unit="benchmark"):
    scores = np.asarray(scores, dtype=float)
    names = tuple("uvwxyz"[: len(scores)])
    algorithms = tuple("ABCD"[: scores.shape[1]])
    found = Blocks(
        algorithms=algorithms,
        runs=scores[:, :, None],
        instances=names,
        block=np.arange(len(names)),
        names=names,
        unit=unit,
        score="accuracy",
        direction="maximize",
    )
    return found.of(algorithms[::-1])  # best first


def by_wins(part, *, share=None, control=None):
    """A pair differs if one of the two is ahead on a share of the blocks, by default all."""
    k = len(part.algorithms)
    left, right = np.triu_indices(k, 1)
    ahead = (part.gains[:, left] > part.gains[:, right]).mean(axis=0)
    decided = np.maximum(ahead, 1.0 - ahead) >= (1.0 if share is None else share(k))
    names = np.array(part.algorithms)
    tests = pd.DataFrame({"left": names[left], "right": names[right], "p_value": np.where(decided, 0.0, 1.0)})
    if control is not None:
        if control not in part.algorithms:
            raise DesignError(f"{control} is not there.")
        tests = tests[(tests["left"] == control) | (tests["right"] == control)]
    return decisions_of(
        levels=part.algorithms,
        means=part.scores.mean(axis=0),
        se=np.full(k, np.nan),
        tests=tests,
        half_widths=np.full(1, np.nan),
        alpha=0.05,
        direction="maximize",
        adjust="none",
        ddf="asymptotic",
        score="accuracy",
    ).among(part.algorithms)


# C before B before A, but for block w, where A is before B
SCORES = [[1, 2, 9], [1, 2, 8], [2, 1, 7], [1, 2, 8], [1, 2, 9]]


def test_the_one_block_that_changes_a_decision_is_named():
    found = stability_of(by_wins, blocks(SCORES))
    table = found.to_frame().set_index(["left", "right"])
    assert table.index.tolist() == [("C", "B"), ("C", "A"), ("B", "A")]
    assert table["decision"].tolist() == ["C better", "C better", "not significant"]
    assert table["changed_by_blocks"].tolist() == [(), (), ("w",)]
    assert table["share_unchanged_blocks"].tolist() == [1.0, 1.0, 0.8]
    assert table["n_changed_blocks"].tolist() == [0, 0, 1]
    assert table["share_unchanged_algorithms"].tolist() == [1.0, 1.0, 1.0]
    assert found.to_frame("changes").to_dict("records") == [
        {
            "left_out": "benchmark",
            "name": "w",
            "left": "B",
            "right": "A",
            "decision": "not significant",
            "without": "B better",
        }
    ]
    assert found.sentences() == (
        "The decision between B and A (not significant) changes when benchmark w leaves the study; the other 2 stay.",
        "All 3 decisions stay the same whichever of the 3 algorithms leaves the study.",
    )


def test_leaving_algorithms_change_the_rest_and_are_not_asked_about_themselves():
    """Of fewer algorithms a smaller share of wins is enough: B and A differ as soon as C is out, and only then."""
    found = stability_of(lambda part: by_wins(part, share=lambda k: {3: 0.95, 2: 0.75}[k]), blocks(SCORES))
    table = found.to_frame().set_index(["left", "right"])
    assert table["changed_by_algorithms"].tolist() == [(), (), ("C",)]
    assert table["share_unchanged_algorithms"].tolist() == [1.0, 1.0, 0.0]  # each pair is in one smaller study
    assert found.sentences()[-1] == (
        "The decision between B and A (not significant) changes when algorithm C leaves the study; the other 2 stay."
    )


def test_several_changes_have_a_headline():
    scores = [[1, 2, 3], [1, 2, 3], [3, 2, 1], [1, 2, 3]]
    found = stability_of(by_wins, blocks(scores, unit="seed"))
    assert found.sentences()[0] == "3 of 3 decisions change when one of the 4 seeds leaves the study."
    assert len(found.sentences()) == 5
    assert found.to_frame("changes")["left_out"].tolist() == ["seed"] * 3


def test_pairs_without_a_test_are_left_out_and_a_missing_control_is_noted():
    found = stability_of(lambda part: by_wins(part, control="C"), blocks(SCORES))
    assert found.to_frame()[["left", "right"]].to_numpy().tolist() == [["C", "B"], ["C", "A"]]
    assert found.notes == ("Without algorithm C there is no ranking, so it counts for nothing here: C is not there.",)
    assert (found.n_blocks, found.n_algorithms) == (5, 2)


def test_two_algorithms_have_one_decision_and_nothing_to_leave_out_but_blocks():
    found = stability_of(by_wins, blocks(np.array(SCORES)[[0, 1, 3], 1:]))
    assert found.sentences() == ("The decision stays the same whichever of the 3 benchmarks leaves the study.",)
    assert np.isnan(found.to_frame()["share_unchanged_algorithms"].iloc[0])
    assert "100 %" in found.summary()


def test_given_decisions_are_the_whole_study():
    data = blocks(SCORES)
    calls = []

    def counted(part):
        calls.append(part.names)
        return by_wins(part)

    stability_of(counted, data, by_wins(data))
    assert len(calls) == 8


def test_refusals():
    with pytest.raises(DesignError, match="takes at least 2 algorithms and 3 benchmarks, got 3 and 2"):
        stability_of(by_wins, blocks(SCORES[:2]))
