"""The functions of significance-analysis 0.2.5, without R.

A script written for that package (Geburek, Mallik, Stoll, Bouthillier & Hutter 2024, arXiv:2408.02533) runs when its
import line says ``from lmemtest.compat.significance_analysis import ...``. Names, arguments, defaults and the shapes
of results are those of the package (0.2.4 and 0.2.5 agree in them); `model_builder` is the form that the figures of
the paper print, and `horizon_pairs` the model of its figure 5. Estimates are the same numbers; where its tests are
wrong, the tests here are right, and `docs/developers/moving.md` lists each difference.
"""

from lmemtest.compat.significance_analysis.checks import (
    PaperBuilder,
    benchmark_information_check,
    fidelity_check,
    horizon_pairs,
    metafeature_analysis,
    model_builder,
    seed_dependency_check,
)
from lmemtest.compat.significance_analysis.mixed_model import Model, glrt, model
from lmemtest.compat.significance_analysis.post_hoc import cd_diagram
from lmemtest.compat.significance_analysis.tables import (
    convert_to_autorank,
    dataframe_validator,
    download_priorband_data,
)

__all__ = [
    "Model",
    "PaperBuilder",
    "benchmark_information_check",
    "cd_diagram",
    "convert_to_autorank",
    "dataframe_validator",
    "download_priorband_data",
    "fidelity_check",
    "glrt",
    "horizon_pairs",
    "metafeature_analysis",
    "model",
    "model_builder",
    "seed_dependency_check",
]
