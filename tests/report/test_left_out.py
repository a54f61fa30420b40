"""What is not identified, was tested and left out, is held as a precaution, or was not judged: said apart."""

from __future__ import annotations

import numpy as np
import pytest
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.core.words import percent

DESIGNS = {  # benchmarks, algorithms, seeds, effect that seeds share, seed of the generator
    "seeds share an effect": (12, 4, 5, 0.6, 2),
    "held as a precaution": (12, 4, 5, 0.0, 1),
    "tested and left out": (12, 4, 5, 0.0, 8),
    "two seeds": (6, 3, 2, 0.0, 1),
    "one seed": (12, 4, 1, 0.0, 1),
    "one benchmark": (1, 4, 8, 0.0, 1),
}


@pytest.fixture(scope="module")
def analyses() -> dict[str, lt.Analysis]:
    found = {}
    for name, (benchmarks, algorithms, seeds, shared, number) in DESIGNS.items():
        rng = np.random.default_rng(number)
        y = rng.normal(size=(benchmarks, 1, 1)) + 0.5 * rng.normal(size=(benchmarks, algorithms, 1)) * (benchmarks > 1)
        y = (
            y
            + 0.5 * rng.normal(size=(benchmarks, algorithms, seeds))
            + shared * rng.normal(size=(1, algorithms, seeds))
        )
        table = table_of_scores(y, "task tool seed", tool=list("ABCD"))
        found[name] = lt.analyze(as_runs(table.astype({"task": str}), "maximize"))
    return found


def sections(analysis: lt.Analysis) -> dict[str, str]:
    """Which of the reasons a report gives for terms that are not in the model, or are in it without being shown."""
    model = " ".join(analysis.to_text().split("The model, and why", 1)[1].split("Marginal means")[0].split())
    heads = {
        "not identified": "Left out, because this design cannot identify them:",
        "tested": "Tested and left out, because the data do not show them:",
        "precaution": "the model allows for it as a precaution",
    }
    return {name: model.split(head, 1)[1] for name, head in heads.items() if head in model}


@pytest.mark.level(2)
def test_each_reason_is_given_where_it_is_true(analyses):
    found = {name: sections(analysis) for name, analysis in analyses.items()}
    assert {name: sorted(reasons) for name, reasons in found.items()} == {
        "seeds share an effect": [],
        "held as a precaution": ["precaution"],
        "tested and left out": ["tested"],
        "two seeds": ["tested"],
        "one seed": ["not identified"],
        "one benchmark": [],
    }
    for name, analysis in analyses.items():
        verdict = analysis.recommendation.seeds and analysis.recommendation.seeds.verdict
        held = "luck" in set(analysis.components["kind"])
        assert ("tested" in found[name]) == (verdict == "not shown")
        assert held == (verdict in ("shown", "precaution"))
        assert "F(" not in " ".join(analysis.recommendation.left_out)  # a test is no reason of the design
        assert all("F(" in text and "not evidence" in text for text in analysis.recommendation.tested)


def test_the_estimated_share_stands_beside_a_precaution(analyses):
    analysis = analyses["held as a precaution"]
    share = analysis.components["share"][analysis.components["kind"] == "luck"].sum()
    text = " ".join(analysis.to_text().split())
    assert f"as a precaution, and its estimated share of the unexplained variance is {percent(share)}." in text
    assert "are a sample, too" not in text


def test_a_check_that_was_not_made_is_not_called_fine(analyses):
    for analysis in analyses.values():
        for row in analysis.diagnosis.to_frame().itertuples():
            not_made = row.found.startswith(("not judged", "too few"))
            assert not_made == (row.severity == "skipped"), row
        for outcome in lt.check(analysis.table).outcomes:
            assert outcome.severity == "skipped" or not outcome.skipped
