"""What is refused, and in which words: `from refusals import refusal, refuses`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

Kind = type[Exception] | tuple[type[Exception], ...]
KINDS = (ArgumentError, DataError, UnknownColumnError)


def refusal(call: Callable[[], object], kind: Kind = KINDS) -> str:
    """The words in which a call is refused, by an error of this kind."""
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def refuses(kind: Kind, words: str, call: Callable[..., object], /, *args: Any, **options: Any) -> None:
    """The call is refused by an error of this kind in these words (a regular expression); what it is given is not."""
    with pytest.raises(kind, match=words):
        call(*args, **options)
