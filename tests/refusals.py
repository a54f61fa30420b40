"""What is refused, and in which words: `from refusals import refusal`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

KINDS = (ArgumentError, DataError, UnknownColumnError)


def refusal(call: Callable[[], object], kind: type[Exception] | tuple[type[Exception], ...] = KINDS) -> str:
    """The words in which a call is refused, by an error of this kind."""
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)
