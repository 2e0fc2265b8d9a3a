"""Writer processes that can be killed and started again with the calls they have not acknowledged."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from tests.local_stack import writer

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

Message = dict[str, Any]


class WriterProcess:
    """One writer and its work. `acks` are the calls it said it has done, over all its lives."""

    def __init__(self, folder: Path, arguments: list[str], calls: list[list[Message]]) -> None:
        folder.mkdir()
        self._work, self._out, self._err = folder / "work", folder / "out", folder / "err"
        self._arguments = arguments
        self._read = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._begun: int | None = None
        self.pending = dict(enumerate(calls))
        self.acks: list[dict[str, Any]] = []
        self.kills = 0
        self.kills_inside_a_call = 0
        self.start()

    def start(self) -> None:
        self._work.write_text("".join(f"{json.dumps(call)}\n" for call in self.pending.items()))
        command = [sys.executable, writer.__file__, *self._arguments, str(self._work)]
        with self._out.open("ab") as out, self._err.open("ab") as err:
            self._process = subprocess.Popen(command, stdout=out, stderr=err)

    @property
    def running(self) -> bool:
        """Whether it is at work; one that ended by itself with work left is an error."""
        if self._process is None:
            return False
        code = self._process.poll()
        self.listen()
        if code is None:
            return True
        self._process = None
        assert (code, self.pending) == (0, {}), self._err.read_text()
        return False

    def listen(self) -> None:
        """Read what it said since the last time; a line that is still being written waits."""
        with self._out.open("rb") as out:
            out.seek(self._read)
            # Up to the first that is cut off: its other half may have come while the rest was read.
            lines = list(takewhile(lambda line: line.endswith(b"\n"), out.readlines()))
        self._read += sum(map(len, lines))
        for line in map(json.loads, lines):
            if "begin" in line:
                self._begun = line["begin"]
                continue
            self._begun = None
            del self.pending[line["done"]]
            self.acks.append(line)

    def kill(self) -> None:
        """SIGKILL, wherever it is."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None
        self.listen()
        # Half a line may be left: it was cut off by the kill, and acknowledges nothing.
        self._read = self._out.stat().st_size
        if self.pending:
            self.kills += 1
            self.kills_inside_a_call += self._begun is not None
        self._begun = None


class Killer:
    """Kills one writer again and again, each time a few calls and a moment after it came to life."""

    def __init__(self, victim: WriterProcess, random: Random) -> None:
        self._victim = victim
        self._random = random
        self._aim()

    def look(self, now: float) -> None:
        """Kill and restart the writer if it is time."""
        victim = self._victim
        if not victim.running:
            return
        if self._at is None and len(victim.acks) >= self._after:
            self._at = now + self._random.uniform(0, 0.1)
        if self._at is not None and now >= self._at:
            victim.kill()
            victim.start()
            self._aim()

    def _aim(self) -> None:
        self._after = len(self._victim.acks) + self._random.randint(2, 8)
        self._at: float | None = None
