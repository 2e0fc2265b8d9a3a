"""How a user types our command: where `stream-sort` is not what a shell finds, its path."""

from __future__ import annotations

import os
import shlex
import sys

COMMAND = "stream-sort"


def program() -> str:
    """Return the command as the user started it: by its name if a shell finds it so, else by its path."""
    called = os.path.abspath(sys.argv[0]) if sys.argv else ""  # noqa: PTH100  # errors name commands: nothing is loaded
    if os.path.basename(called) != COMMAND or not os.access(called, os.X_OK) or _is_found(called):  # noqa: PTH119
        return COMMAND
    below = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118
    return shlex.quote(called.removeprefix(below))


def _is_found(called: str) -> bool:
    from shutil import which  # noqa: PLC0415  # only for the command line

    found = which(COMMAND)
    return found is not None and os.path.samefile(found, called)  # noqa: PTH121
