"""The command line: parse, call, write.

Results go to standard output, plain where it is not a terminal; progress, warnings and errors go to standard error.
Exit codes: 0 done, 1 `check` found errors in the table, 2 the input or the command is wrong,
141 the reader of the output has gone.
"""

from lmemtest.cli import evaluating, planning  # add their commands
from lmemtest.cli.commands import app, main

__all__ = ["app", "evaluating", "main", "planning"]
