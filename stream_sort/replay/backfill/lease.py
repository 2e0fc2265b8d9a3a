"""Who works on a job: one run at a time, because two that deliver the same queues would mix their order.

A lease is a file beside the job's progress, named by a number. Whoever is to follow puts the next number; of several
that do so at once one wins. A run whose process is dead, or that was not seen for `EXPIRY` seconds, is followed.

Only the highest number holds: whatever a run that was followed still writes is below it. So no number may come twice,
and the last file stays when it is given back.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_sort.errors import FileMissing, ReplayFailed, SettingsError, StreamSortError
from stream_sort.replay.files.json_content import value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.replay.files.storage import Storage

LEASES = "lease/"
EXPIRY = 120.0
RENEWAL = 20.0
BOOT = Path("/proc/sys/kernel/random/boot_id")
PROCESSES = Path("/proc/self/ns/pid")
NAME = re.compile(rf"{LEASES}([0-9]{{7}}|[1-9][0-9]{{7,}})")


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a job, until another run takes it. Picklable, as it goes to every task."""

    storage: Storage
    number: int
    owner: str
    machine: str
    pid: int
    clock: Callable[[], float] = field(default=time.time)

    @classmethod
    def take(
        cls,
        storage: Storage,
        *,
        above: int = 0,
        machine: str = "",
        pid: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Lease:
        """Take the lease of the job, with a number `above` one; SettingsError while another run has it."""
        machine, pid = machine or this_machine(), os.getpid() if pid is None else pid
        last = _last(storage)
        there = _read(storage, _name(last))
        mine = cls(storage, max(last, above) + 1, uuid.uuid4().hex, machine, pid, clock)
        if there is not None and not _is_over(there, mine):
            raise _refusal(there, clock(), storage.address(_name(last)))
        # Others may have come and gone since we looked: then ours is there already, or below theirs.
        if not storage.put_if_absent(mine.name, mine.text()) or not mine.is_held():
            name = _name(_last(storage))
            raise _refusal(_read(storage, name), clock(), storage.address(name))
        for number in _numbers(storage):
            if number < mine.number:
                storage.delete(_name(number))
        return mine

    @property
    def name(self) -> str:
        """Its file."""
        return _name(self.number)

    def text(self, *, released: bool = False) -> bytes:
        """Return what its file holds now."""
        seen = {"owner": self.owner, "machine": self.machine, "pid": self.pid, "seen": self.clock()}
        return json.dumps(seen | {"released": released}).encode()

    def is_held(self) -> bool:
        """Return True if no other run has taken over, and it was not given back."""
        there = _read(self.storage, self.name)
        if there is None or there["owner"] != self.owner or there["released"]:
            return False
        return _last(self.storage) <= self.number

    def check(self) -> None:
        """Raise ReplayFailed if another run has taken over."""
        if not self.is_held():
            raise ReplayFailed("another run of this job has taken over, and goes on with it; this one has stopped")

    def renew(self) -> bool:
        """Say that this run is at work; False if another one has taken over."""
        held = self.is_held()
        if held:
            self.storage.write(self.name, self.text())
        return held

    def release(self) -> None:
        """Give it back."""
        if self.is_held():
            self.storage.write(self.name, self.text(released=True))

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew it now and then, and give it back at the end."""
        ended = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(ended,), daemon=True)
        keeper.start()
        try:
            yield
        finally:
            ended.set()
            keeper.join()
            self.release()

    def _keep(self, ended: threading.Event) -> None:
        held = True
        while held and not ended.wait(RENEWAL):
            try:
                held = self.renew()
            except StreamSortError:
                # Out of reach for a moment; there is time for more than one attempt.
                continue


def this_machine() -> str:
    """Return a name for where process ids mean the same: containers may share a host's name, but not its processes."""
    try:
        told = f"{BOOT.read_text().strip()[:8]}, {PROCESSES.readlink()}"
    except OSError:
        told = uuid.uuid4().hex[:8]
    return f"{socket.gethostname()} ({told})"


def _name(number: int) -> str:
    return f"{LEASES}{number:07d}"


def _numbers(storage: Storage) -> list[int]:
    """Return the numbers there are; files of other names are not ours."""
    return [int(found[1]) for name in storage.list(LEASES) if (found := NAME.fullmatch(name))]


def _last(storage: Storage) -> int:
    return max(_numbers(storage), default=0)


def _read(storage: Storage, name: str) -> dict[str, Any] | None:
    """Return what a lease says; None if it is gone, or says nothing."""
    try:
        there = value_of(storage.read(name))
        return {"owner": str(there["owner"]), "machine": str(there["machine"])} | {
            "pid": int(there["pid"]),
            "seen": float(there["seen"]),
            "released": there.get("released") is True,
        }
    except (FileMissing, KeyError, OverflowError, TypeError, ValueError):
        return None


def _is_over(there: dict[str, Any], mine: Lease) -> bool:
    """Return True if a run that had the lease has given it back, or has ended without."""
    if there["released"] or mine.clock() - there["seen"] > EXPIRY:
        return True
    return bool(there["machine"] == mine.machine) and not _is_alive(there["pid"])


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (OverflowError, ProcessLookupError):
        return False
    except OSError:
        # Somebody else's process.
        return True
    return True


def _refusal(there: dict[str, Any] | None, now: float, address: str) -> SettingsError:
    who, ending = "", f"One that was killed elsewhere is followed once it was not seen for {EXPIRY:g} s"
    if there is not None:
        age = now - there["seen"]
        when = f"seen {max(0.0, age):.0f} s ago"
        # Not a number is neither; such a lease would never end by itself.
        if not age >= -EXPIRY:
            when = "seen at a time that is not past"
            ending = f"If no run is alive, a clock was wrong: delete {address}, and run this one again"
        who = f" (process {there['pid']} on {there['machine']}, {when})"
    return SettingsError(f"another run of this job is at work{who}; wait for it to end. {ending}")
