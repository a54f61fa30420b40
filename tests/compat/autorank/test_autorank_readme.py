"""Scripts as users of autorank 1.3.0 have them: the code of its README, and the calls of its own tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lmemtest.compat.autorank import autorank, create_report, latex_report, latex_table, plot_stats

# The code of the README of autorank 1.3.0 (Apache licence 2.0).
README = """
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
from autorank import autorank, plot_stats, create_report, latex_table

np.random.seed(42)
pd.set_option('display.max_columns', 7)
std = 0.3
means = [0.2, 0.3, 0.5, 0.8, 0.85, 0.9]
sample_size = 50
data = pd.DataFrame()
for i, mean in enumerate(means):
    data['pop_%i' % i] = np.random.normal(mean, std, sample_size).clip(0, 1)
result = autorank(data, alpha=0.05, verbose=False)
print(result)
result_bayesian = autorank(data, alpha=0.05, verbose=False, approach='bayesian')
create_report(result)
plot_stats(result)
plt.show()
latex_table(result)
"""
# What it prints beside it: mean rank, median, median absolute deviation and effect size of each population.
PRINTED = {
    "pop_5": (2.18, 0.912005, 0.130461, 0.0),
    "pop_4": (2.29, 0.910437, 0.132786, 0.012),
    "pop_3": (2.47, 0.858091, 0.210394, 0.308),
    "pop_2": (3.95, 0.505057, 0.333594, 1.607),
    "pop_1": (4.71, 0.313824, 0.247339, 3.025),
    "pop_0": (5.40, 0.129756, 0.192377, 4.759),
}
POSTERIOR = {"pop_4": 0.6649, "pop_3": 0.81552, "pop_2": 1.0, "pop_1": 1.0, "pop_0": 1.0}  # smaller than pop_5
NORMAL_TABLES = {
    "homoscedastic": ([0.2, 0.3, 0.5, 0.55, 0.6, 0.6, 0.9], [0.2] * 7),
    "heteroscedastic": ([0.2, 0.3, 0.5, 0.8, 0.85, 0.9], [0.05, 0.1, 0.5, 0.1, 0.05, 0.05]),
    "two": ([0.3, 0.7], [0.15] * 2),
    "no difference": ([0.5] * 4, [0.2] * 4),
}


def run(script):
    """The names of a script after it has run with another import line; the generator and options are as before."""
    state, columns = np.random.get_state(), pd.get_option("display.max_columns")  # noqa: NPY002
    namespace: dict[str, object] = {}
    exec(script.replace("from autorank", "from lmemtest.compat.autorank"), namespace)
    np.random.set_state(state)  # noqa: NPY002
    pd.set_option("display.max_columns", columns)
    return namespace


@pytest.mark.level(2)
def test_the_readme_runs_and_ranks_as_it_says(capsys, plt, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    readme = run(README)
    out = capsys.readouterr().out
    table = readme["result"].rankdf
    assert list(table.index) == list(PRINTED)
    for name, (rank, median, mad, effect) in PRINTED.items():
        assert table.loc[name, "meanrank"] == pytest.approx(rank)
        assert table.loc[name, "median"] == pytest.approx(median, abs=1e-6)
        assert table.loc[name, "effect_size"] == pytest.approx(effect, abs=5e-4)
        assert 1.4826 * table.loc[name, "mad"] == pytest.approx(mad, abs=1e-6)  # scaled in the version that printed it
    assert readme["result"].pvalue == pytest.approx(2.3412212612346733e-28, rel=1e-9)
    assert readme["result"].cd == pytest.approx(1.0662484349869374, rel=1e-4)
    smaller = readme["result_bayesian"].rankdf["p_smaller"]
    assert smaller.drop("pop_5").to_dict() == pytest.approx(POSTERIOR, abs=0.02)
    assert "pop_5, pop_4 and pop_3; pop_2 and pop_1; pop_1 and pop_0." in out
    assert r"pop\_5 & 2.180 & 0.912 &" in out
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("name", NORMAL_TABLES)
def test_documented_calls_run(name, capsys):
    """Every call of its test suite, on tables of the same kind."""
    rng = np.random.default_rng(42)
    data = pd.DataFrame(
        {f"pop_{i}": rng.normal(m, s, 50) for i, (m, s) in enumerate(zip(*NORMAL_TABLES[name], strict=True))}
    )
    for options in ({}, {"order": "ascending"}, {"force_mode": "parametric"}, {"force_mode": "nonparametric"},
                    {"approach": "bayesian", "nsamples": 100}):  # fmt: skip
        result = autorank(data, 0.05, True, **options)
        create_report(result)
        latex_table(result, label="tbl:x")
        latex_report(result, generate_plots=False, complete_document=False, prefix="pre_")
        if result.omnibus != "bayes" and result.pvalue >= result.alpha:
            with pytest.raises(ValueError, match="allow_insignificant=True"):
                plot_stats(result)
    assert r"\label{tbl:pre_stat_results}" in capsys.readouterr().out
