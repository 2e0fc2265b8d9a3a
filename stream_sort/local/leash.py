"""Run a command that never outlives whoever started it. A script of its own: it may import the stdlib only.

    python leash.py STATE_DIR COMMAND...

Holds on to the read end of a pipe (stdin). When the other end closes, because its owner closed it, ended or
was killed in whatever way, or when somebody writes to it, the command's whole process group is ended and STATE_DIR is
removed. Meanwhile the group's number stands in STATE_DIR/group, for the case that this process itself is killed.
If the command ends by itself, a line on stdout says when and how.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

POLL = 0.1
PATIENCE = 3.0
BY_ITSELF = "ERROR [leash] the local AWS ended by itself: "
SIGNALS = 128


def main(state_dir: str, command: list[str]) -> int:
    """Run the command until it ends or the pipe closes; return its exit code."""
    # Only the pipe ends this process: a Ctrl-C is for the owner, who then lets go. Handlers, unlike
    # SIG_IGN, are not inherited: the command can still be asked to end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        # The owner chose the command.
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
        Path(state_dir, "group").write_text(str(child.pid), encoding="ascii")
        while child.poll() is None and not select.select([sys.stdin], [], [], POLL)[0]:
            pass
        if child.returncode is not None:
            said = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {BY_ITSELF}{how_ended(child.returncode)}"
            print(said, flush=True)  # noqa: T201  # to its log
        end_child(child)
    finally:
        shutil.rmtree(state_dir, ignore_errors=True)
    return child.returncode


def how_ended(code: int) -> str:
    """Say how a process ended: by itself or by a signal, of which a shell or another parent adds 128."""
    number = -code if code < 0 else code - SIGNALS
    return f"killed by signal {number}" if number > 0 else f"exit code {code}"


def end_child(child: subprocess.Popen[bytes]) -> None:
    """End the child's whole group, and the child."""
    end_group(child.pid, child.poll)
    child.wait()


def end_group(group: int, reap: Callable[[], object] = lambda: None) -> None:
    """Ask every process of a group to end, then make it; `reap` is called while they are waited for."""
    _signal_group(group, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while _signal_group(group, 0) and time.monotonic() < deadline:
        reap()
        time.sleep(POLL / 5)
    _signal_group(group, signal.SIGKILL)


def _signal_group(group: int, number: int) -> bool:
    """Return True if there was anybody to signal."""
    # macOS answers "not permitted" for a group of which only zombies are left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
