"""``python -m lmemtest``: the command line."""

from lmemtest.cli import main

if __name__ == "__main__":
    main()
