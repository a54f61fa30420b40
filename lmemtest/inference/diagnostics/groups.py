"""Do the groups carry their variances: number of levels, variances at zero, and the end of the search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._result import Result, result
from lmemtest._rounding import written
from lmemtest.inference.diagnostics.check import Check

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.model import LmmFit

# The standard error of a variance from q levels is sqrt(2 / (q - 1)) of it at best: 47 % from 10, 71 % from 5.
LEVELS_LOOK = 10


@result
class Groups(Result):
    """The random terms as carriers of variances.

    Attributes
    ----------
    terms : tuple of str
        Labels.
    levels : tuple of int
        Levels of each.
    singular : tuple of bool
        Whether its covariance is estimated on the boundary.
    converged : bool
        Whether the certificate of the search is complete.
    message : str
        What the search said.
    """

    terms: tuple[str, ...]
    levels: tuple[int, ...]
    singular: tuple[bool, ...]
    converged: bool
    message: str

    def table(self) -> pd.DataFrame:
        """One row per term: ``term``, ``levels``, ``singular``, ``relative_se`` (of its variance, at best)."""
        import pandas as pd

        errors = [float(np.sqrt(2.0 / (q - 1))) for q in self.levels]
        columns = {"term": self.terms, "levels": self.levels, "singular": self.singular, "relative_se": errors}
        return pd.DataFrame({name: list(values) for name, values in columns.items()})

    @property
    def title(self) -> str:
        """One line above the table."""
        return "Groups"

    def sentences(self) -> tuple[str, ...]:
        """How the search ended."""
        return (f"The search {self.message}.",)

    def checks(self) -> list[Check]:
        """The lines of the diagnosis: one per term, and the search."""
        lines = [_term(*values) for values in zip(self.terms, self.levels, self.singular, strict=True)]
        good = "The optimum is certified: no step improves the likelihood."
        bad = f"The search {self.message}: fit again with restarts=5, or a simpler random part."
        search = Check(
            check="convergence",
            subject="search",
            found="certified" if self.converged else "not certified",
            value=float(self.converged),
            p_value=float("nan"),
            decision="fine" if self.converged else "act",
            advice=good if self.converged else bad,
        )
        return [*lines, search]


def groups(fit: LmmFit) -> Groups:
    """Levels and boundaries of the random terms, and the certificate of the search.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.inference.diagnostics.groups import groups
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
    >>> groups(lt.fit_lmm("y ~ a + (1 | g)", table)).to_frame().to_dict("list")
    {'term': ['(1 | g)'], 'levels': [3], 'singular': [False], 'relative_se': [1.0]}
    """
    singular = set(fit.singular_terms)
    return Groups(
        terms=tuple(term.label for term in fit.design.random),
        levels=tuple(len(term.levels) for term in fit.design.random),
        singular=tuple(term.label in singular for term in fit.design.random),
        converged=fit.converged,
        message=fit.optim.message,
    )


def _term(label: str, levels: int, singular: bool) -> Check:
    sentences = []
    if singular:
        sentences.append("A variance is zero or a correlation one; the tests stand, a simpler term gives the same fit.")
    if levels < LEVELS_LOOK:
        share = 100.0 * np.sqrt(2.0 / (levels - 1))
        sentences.append(
            f"Its variance is known to ±{written(share, '.0f')} % at best: use ddf='kenward-roger', and do not read "
            f"the variance."
        )
    return Check(
        check="groups",
        subject=label,
        found=f"{levels:,} levels{', singular' if singular else ''}",
        value=float(levels),
        p_value=float("nan"),
        decision="look" if sentences else "fine",
        advice=" ".join(sentences) or "Enough levels to estimate the variance.",
    )
