"""The command line: parse, call, write.

Results go to standard output, plain where it is not a terminal; progress, warnings and errors go to standard error.
Exit codes: 0 done, 1 `check` found errors in the table, 2 the input or the command is wrong,
141 the reader of the output has gone. `gate` answers with them: 0 not worse, 1 worse, 2 cannot say, 3 the input or the
command is wrong.
"""

try:
    from lmemtest.cli.commands import app, main
except KeyboardInterrupt:  # Ctrl-C while modules are loaded
    raise SystemExit(130) from None

__all__ = ["app", "main"]
