"""Names that will go: they work for two minor versions and say what to write instead.

The policy: what is on the API page is public. Before a public name or argument changes its meaning or goes, it warns
(`FutureWarning`, which is shown by default) for at least two minor versions, and the changelog has it under the version
that begins to warn. Numbers may change in any version where they were wrong or less exact; the changelog says so.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def warn_deprecated(what: str, *, since: str, removal: str, instead: str, stacklevel: int = 3) -> None:
    """Warn that a name or an argument will go.

    Parameters
    ----------
    what : str
        What the caller wrote: "power(reps=)".
    since, removal : str
        The version that begins to warn, and the one without it.
    instead : str
        What to write: "n_draws=".
    stacklevel : int
        Whose line is shown: 3 for the caller of the function that warns.

    Warns
    -----
    FutureWarning
    """
    message = f"{what} is deprecated since lmemtest {since} and goes in {removal}. Write {instead} instead."
    warnings.warn(message, FutureWarning, stacklevel=stacklevel)


def deprecated(*, since: str, removal: str, instead: str) -> Callable[[F], F]:
    """Decorate a function that will go.

    Examples
    --------
    >>> @deprecated(since="0.2", removal="0.4", instead="rank(...)")
    ... def ranking():
    ...     return 1
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     value = ranking()
    >>> value, str(seen[0].message)
    (1, 'ranking is deprecated since lmemtest 0.2 and goes in 0.4. Write rank(...) instead.')
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def warned(*args: Any, **options: Any) -> Any:
            warn_deprecated(function.__name__, since=since, removal=removal, instead=instead)
            return function(*args, **options)

        warned.__lmemtest_removal__ = removal  # type: ignore[attr-defined]
        return warned  # type: ignore[return-value]

    return decorate
