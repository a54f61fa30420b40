"""Named families of contrasts against emmeans and contr.helmert (tests/reference/contrasts.R)."""

import numpy as np
import pandas as pd
import pytest
from refusals import refusal

from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.means.named_contrasts import NAMED_CONTRASTS, helmert, named_contrasts
from lmemtest.lmm.model import fit_lmm

LETTERS = "abcdefghijkl"


def test_coefficients_are_those_of_emmeans(reference):
    for want in reference("contrasts")["coefficients"]:
        (rows, adjust), labels = NAMED_CONTRASTS[want["family"]], LETTERS[: want["k"]]
        got = rows(labels)
        assert (list(got), adjust) == (want["names"], want["adjust"])
        np.testing.assert_allclose(np.array(list(got.values())), want["rows"], rtol=0, atol=1e-14)


def test_helmert_is_that_of_r_as_differences_of_means(reference):
    for want in reference("contrasts")["helmert"]:
        got = np.array(list(helmert(LETTERS[: want["k"]]).values()))
        np.testing.assert_allclose(got, want["rows"], rtol=0, atol=1e-15)


@pytest.mark.parametrize("i", [0, 1])
def test_estimates_and_tests_match_emmeans(reference, fitted, i):
    grid = reference("contrasts")["grids"][i]
    em = emmeans(fitted(grid["data"], grid["formula"]), grid["specs"], by=grid["by"])
    for family, by_adjust in grid["families"].items():
        for adjust, rows in by_adjust.items():
            got, want = em.contrast(family, adjust=adjust).to_frame(), pd.DataFrame(rows)
            # numbers as levels: emmeans writes temperature175
            want["contrast"] = want["contrast"].str.replace(grid["specs"], "", regex=False)
            names = ["contrast", *([grid["by"]] if grid["by"] else [])]
            both = got.merge(want, on=names, suffixes=("", "_r"))
            assert len(both) == len(got) == len(want)
            for name, rel in [("estimate", 1e-5), ("se", 1e-6), ("df", 1e-3), ("p_value", 1e-4)]:
                slack = 1e-5 * both["se"].min() if name == "estimate" else 1e-9
                np.testing.assert_allclose(both[name], both[f"{name}_r"], rtol=rel, atol=slack, err_msg=name)


def test_a_family_brings_its_adjustment_and_own_coefficients_none(means_of):
    em = means_of([1.0, 2.0, 4.0], np.eye(3))
    assert [em.contrast(name, rng=1).adjust for name in ("poly", "helmert", "consec", "eff", "del.eff")] == [
        "none",
        "none",
        "mvt",
        "fdr",
        "fdr",
    ]
    assert em.contrast({"a": [1, -1, 0]}).adjust == "none"
    assert em.contrast("consec", adjust="holm").adjust == "holm"


def test_polynomials_of_unequal_steps_say_that_they_take_the_order():
    runs = pd.DataFrame({"budget": [1, 3, 9] * 4, "task": list("wwwxxxyyyzzz"), "score": np.arange(12.0) ** 1.5})
    note = "The levels of budget are not equally spaced"
    for budgets, said in [([1, 3, 9], True), ([1, 2, 3], False)]:
        em = emmeans(fit_lmm("score ~ C(budget) + (1|task)", runs.assign(budget=budgets * 4)), "budget")
        assert any(text.startswith(note) for text in em.contrast("poly").notes) == said
        assert not any(text.startswith(note) for text in em.contrast("helmert").notes)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("polly",
         "coefficients must name a family of contrasts (poly, helmert, consec, eff, del.eff) or give the numbers of "
         "each, got 'polly'. Did you mean 'poly'?"),
        ("pairwise", "coefficients='pairwise' has a function of its own, with its adjustment: means.pairs()."),
        ("trt.vs.ctrl",
         "coefficients='trt.vs.ctrl' has a function of its own, with its adjustment: means.against(control)."),
    ],
)  # fmt: skip
def test_names_that_are_no_family_are_refused(means_of, name, message):
    assert refusal(lambda: named_contrasts(name), ArgumentError) == message
    with pytest.raises(ArgumentError):
        means_of([1.0, 2.0], np.eye(2)).contrast(name)


def test_one_mean_has_no_contrasts(means_of):
    with pytest.raises(ArgumentError, match="coefficients='eff' needs at least two means in each group, got one"):
        means_of([1.0], np.eye(1)).contrast("eff")
