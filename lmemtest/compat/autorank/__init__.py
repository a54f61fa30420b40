"""The functions of Autorank 1.3, with correct numbers.

A script written for Autorank (Herbold 2020, doi:10.21105/joss.02173) runs when its import line says
``from lmemtest.compat.autorank import ...``: names, arguments, defaults, columns and fields are the same.
`docs/for-autorank-users.md` lists each difference. Importing this loads neither numpy nor matplotlib; the work is in
the modules that the functions call.
"""

from lmemtest.compat.autorank.interface import (
    autorank,
    create_report,
    latex_report,
    latex_table,
    plot_posterior_maps,
    plot_stats,
)
from lmemtest.compat.autorank.result import RankResult

__all__ = [
    "RankResult",
    "autorank",
    "create_report",
    "latex_report",
    "latex_table",
    "plot_posterior_maps",
    "plot_stats",
]
