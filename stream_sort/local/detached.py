"""A MiniStack that outlives the command that started it, until somebody lets go of its leash."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import LocalStackFailed
from stream_sort.local import leash, log_keeper
from stream_sort.local.ministack import POLL, MiniStack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOG = "ministack.log"
HUNG_LOG = "ministack-that-hung.log"
FUNCTIONS_LOG = "functions.log"
ENDED = re.compile(rf"(\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d) {re.escape(leash.BY_ITSELF)}(.*)")
CLOCK = "%Y-%m-%d %H:%M:%S"
# Its files are many, each function's worker having a layer of its own; a busy machine takes its time to remove them.
STOP_DEADLINE = 60.0
LAST_DEADLINE = 15.0


@dataclass(frozen=True, slots=True)
class Death:
    """The end of a local AWS that nobody asked for; `at` is in seconds."""

    at: float
    reason: str

    def __str__(self) -> str:
        return f"died at {time.strftime(CLOCK, time.localtime(self.at))} ({self.reason})"


class DetachedMiniStack(MiniStack):
    """One MiniStack in a folder. Its leash is held by a FIFO there: what is written into it ends all its processes.

    No process number is trusted to find it again: whether the FIFO has a reader tells whether it runs, even after
    a reboot or a kill.
    """

    def __init__(self, home: Path, port: int, *, report: Callable[[str], None] | None = None) -> None:
        super().__init__(report=report, enforce_roles=True)
        self.home = home
        self.port = port

    @property
    def state_dir(self) -> Path:
        """See MiniStack."""
        return self.home / "aws"

    @property
    def is_running(self) -> bool:
        """Return True if its leash is held."""
        try:
            os.close(os.open(self._fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    @property
    def is_up(self) -> bool:
        """Return True if it answers."""
        return self.is_running and self._is_healthy()

    def await_answer(self, patience: float) -> bool:
        """Return True as soon as it answers; False if it ends, or does not answer within so many seconds."""
        deadline = time.monotonic() + patience
        while not self.is_up:
            if not self.is_running or time.monotonic() > deadline:
                return False
            time.sleep(POLL)
        return True

    @property
    def death(self) -> Death | None:
        """Return when and how it ended; None while it runs. After a reboot, or a killed leash, its last sign of life.

        Of a folder in which one was up, and was not taken down.
        """
        # Its leash may still be at work, removing what it left.
        for line in reversed(self.log_lines()):
            if found := ENDED.fullmatch(line):
                return Death(time.mktime(time.strptime(found[1], CLOCK)), found[2])
        if self.is_running:
            return None
        signs = [path.stat().st_mtime for path in self.home.iterdir() if path.is_file()]
        return Death(max(signs), "its last sign of life; was the machine restarted?") if signs else None

    @property
    def functions_log(self) -> Path:
        """Return the file that keeps what the functions log, as log_keeper writes it."""
        return self.home / FUNCTIONS_LOG

    def stop(self) -> None:
        """End it with all its processes, whoever started it, and remove its state; harmless when it is not running."""
        self._let_go()
        self._end_strays()
        process, self._process = self._process, None
        if process is not None:
            process.wait()
        if self._log is not None:
            self._log.close()
            self._log = None
        self._fifo.unlink(missing_ok=True)
        shutil.rmtree(self.state_dir, ignore_errors=True)

    def give_up(self) -> None:
        """End it after a start that failed; its folder stays, and says how it ended."""
        self.stop()
        with (self.home / LOG).open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime(CLOCK)} {leash.BY_ITSELF}it could not be started again\n")

    def end_hung(self) -> Path:
        """End one that runs and does not answer; return the file in which its log stays."""
        self.stop()
        return (self.home / LOG).replace(self.home / HUNG_LOG)

    def log_lines(self) -> list[str]:
        """See MiniStack; whoever started it."""
        try:
            return (self.home / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []

    @property
    def _fifo(self) -> Path:
        return self.home / "leash"

    def _prepare(self) -> None:
        self.stop()
        self._state_dir = self.state_dir
        self._state_dir.mkdir(parents=True)
        os.mkfifo(self._fifo)
        self._log = (self.home / LOG).open("wb+")
        self.functions_log.unlink(missing_ok=True)

    def _spawn(self, command: list[str], held_by: int) -> subprocess.Popen[bytes]:  # noqa: ARG002  # by the FIFO
        # Open for both: the leash is then its own writer, so that it never sees the end of the file.
        fifo = os.open(self._fifo, os.O_RDWR)
        try:
            keeper = [sys.executable, "-I", log_keeper.__file__, str(self.port), str(self.functions_log)]
            return super()._spawn([*keeper, *command], fifo)
        finally:
            os.close(fifo)

    def _let_go(self) -> None:
        """Ask its leash to end it, then once more, then kill all of it; LocalStackFailed if nothing helps."""
        if self._ends(STOP_DEADLINE) or self._ends(LAST_DEADLINE):
            return
        self._end_strays()
        self._kill_leash()
        if not self._ends(LAST_DEADLINE):
            raise LocalStackFailed(f"the local AWS in {self.home} does not end; its log is {self.home / LOG}")
        self._report(f"the local AWS did not end within {STOP_DEADLINE + LAST_DEADLINE:.0f} s; it was killed")

    def _ends(self, patience: float) -> bool:
        """Ask its leash to end it; return True once nobody holds the leash."""
        try:
            fifo = os.open(self._fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return True
        try:
            os.write(fifo, b".")
        finally:
            os.close(fifo)
        deadline = time.monotonic() + patience
        while self.is_running and time.monotonic() < deadline:
            time.sleep(POLL)
        return not self.is_running

    def _end_strays(self) -> None:
        """End the group of a MiniStack whose leash was killed; only if the number still belongs to one."""
        try:
            group = int((self.state_dir / "group").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return
        if "ministack" in _args_of("-p", str(group)):
            leash.end_group(group)

    def _kill_leash(self) -> None:
        """Kill the leash, which has a group of its own: it may be stopped, or take very long to remove the files."""
        for line in _args_of("-A").splitlines():
            process, _, args = line.strip().partition(" ")
            if f"{leash.__file__} {self.state_dir} " in args:
                leash.end_group(int(process))


def _args_of(*which: str) -> str:
    """Return a line a process: its number and what it was called with."""
    # -ww: or what stands far to the right may be cut off.
    asked = ["ps", "-ww", "-o", "pid=,args=", *which]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout  # noqa: S603  # a number
