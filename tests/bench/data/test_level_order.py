"""Levels of text are in the order in which people count, by one rule, wherever they are shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from study import as_runs

import lmemtest as lt
from lmemtest.core.codes import in_order, natural_key

COUNTED = [f"game{i}" for i in (0, 1, 2, 9, 10, 11, 100)]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["game10", "game2", "game1"], ["game1", "game2", "game10"]),
        (["a2b10", "a2b9", "a10b1"], ["a2b9", "a2b10", "a10b1"]),
        (["lr0.5", "lr0.25", "lr1"], ["lr0.25", "lr0.5", "lr1"]),
        (["v1.10.2", "v1.9.2"], ["v1.9.2", "v1.10.2"]),
        (["a", "B", "_"], ["B", "_", "a"]),
        (["x01", "x1", "x001"], ["x001", "x01", "x1"]),
        (["9" * 5000, "1" + "0" * 5000], ["9" * 5000, "1" + "0" * 5000]),
        (["", "1", "a"], ["", "1", "a"]),
        (["-2", "1e1", "09", "-10"], ["-10", "-2", "09", "1e1"]),
        ([10, 9, 2.5], [2.5, 9, 10]),
        ([True, False], [False, True]),
    ],
)
def test_levels_sort_as_people_count(given: list[object], wanted: list[object]) -> None:
    assert in_order(given) == wanted
    assert in_order(reversed(given)) == wanted


@pytest.mark.parametrize(
    "pattern", ["task-000", "lr0.00", "v0.00.0", "a0b0", "0 x 0.0", "00.a.00", "x00.0.", "\N{SUPERSCRIPT TWO}.00"]
)
def test_texts_that_differ_in_digits_alone_have_the_same_order(pattern: str) -> None:
    rng = np.random.default_rng(0)
    digits = [list(map(str, rng.choice([0, 0, 1, 9, 5], len(pattern)))) for _ in range(40)]
    texts = {"".join(new if old == "0" else old for old, new in zip(pattern, one, strict=True)) for one in digits}
    assert in_order(texts) == sorted(texts, key=natural_key)


def test_no_two_texts_share_a_place() -> None:
    texts = [
        "1", "01", "1.0", "1.", ".1", "a1", "a01", "a1.50", "a1.5", "\N{ARABIC-INDIC DIGIT TWO}",
        "\N{SUPERSCRIPT TWO}",
    ]  # fmt: skip
    assert len({natural_key(text) for text in texts}) == len(texts)


def _table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = [(tool, game, rng.normal()) for game in COUNTED for tool in ("v2", "v10", "v9")]
    return pd.DataFrame(rows, columns=["tool", "game", "loss"]).sample(frac=1.0, random_state=1)


@pytest.mark.parametrize("backend", ["pandas", "polars", "lazy"])
def test_one_order_in_runs_checks_fits_means_and_effects(backend: str) -> None:
    polars = pytest.importorskip("polars")
    table = _table()
    data = table if backend == "pandas" else polars.from_pandas(table.reset_index(drop=True))
    data = data.lazy() if backend == "lazy" else data
    runs = lt.Runs(data, score="loss", direction="minimize", algorithm="tool", benchmark="game")
    assert runs.algorithms == ("v2", "v9", "v10")
    assert list(runs.levels("game")) == COUNTED
    cells = runs.check(rules_only=True).cells
    assert list(dict.fromkeys(cells["benchmark"])) == COUNTED
    own = table.set_index(["game", "tool"])["loss"]
    for row in cells.itertuples():
        assert row.mean == own[row.benchmark, row.algorithm]
    fit = lt.fit_lmm("loss ~ tool + (1 | game)", runs)
    assert list(fit.params.index) == ["Intercept", "tool[T.v9]", "tool[T.v10]"]
    means = fit.emmeans("tool").to_frame()
    assert means["tool"].tolist() == ["v2", "v9", "v10"]
    assert means["emmean"].to_numpy() == pytest.approx(table.groupby("tool")["loss"].mean()[["v2", "v9", "v10"]])


def test_categories_keep_their_own_order() -> None:
    table = _table().assign(tool=lambda t: pd.Categorical(t["tool"], ["v10", "v2", "v9"]))
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="game")
    assert runs.algorithms == ("v10", "v2", "v9")


@pytest.mark.parametrize("names", [[2, 9, 10], ["m2", "m9", "m10"], ["z", "y", "x"]], ids=str)
def test_curves_belong_to_their_algorithms(names: list[object]) -> None:
    """Curves of a complete table are computed by place: algorithm 10 comes after 9, and categories as declared."""
    rng = np.random.default_rng(0)
    rows = [
        (name, f"b{b}", t, 10.0 * i + rng.normal(0.0, 0.01))
        for i, name in enumerate(names)
        for b in range(5)
        for t in (1, 2, 4)
    ]
    table = pd.DataFrame(rows, columns=["algorithm", "benchmark", "budget", "loss"])
    if names[0] == "z":
        table["algorithm"] = pd.Categorical(table["algorithm"], names)
    found = lt.anytime(as_runs(table), n_draws=1000).to_frame()
    place = {str(name): 10.0 * i for i, name in enumerate(names)}
    wanted = found["left"].map(place) - found["right"].map(place)
    assert found["estimate"].to_numpy() == pytest.approx(wanted.to_numpy(), abs=0.1)
