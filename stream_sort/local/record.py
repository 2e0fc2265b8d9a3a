"""What is remembered of a local stack between commands: a small file in its folder, and a lock."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Self

from stream_sort.errors import InvalidInput, LocalStackFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = "stack.json"
FOLDER = ".stream-sort"
# One of these is in every folder of a local stack, also of one that did not get far.
TRACES = (FILE, "leash", "ministack.log", "sam.log")


@dataclass(frozen=True, slots=True)
class StackRecord:
    """A local stack: where it listens, what was asked for, and what came of it.

    `deployed` are the parameters read back, `sources` and `digest` tell what was built, and which handler is in it.
    """

    port: int
    parameters: dict[str, str] = field(default_factory=dict)
    handler: str | None = None
    deployed: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    sources: str = ""
    digest: str = ""

    @classmethod
    def load(cls, home: Path) -> Self | None:
        """Return the record of a folder; None if there is none that can be read."""
        try:
            return cls(**json.loads((home / FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def save(self, home: Path) -> Self:
        """Write it, so that a reader sees all of it or the one before; return it."""
        home.mkdir(parents=True, exist_ok=True)
        fresh = home / (FILE + ".new")
        fresh.write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")
        fresh.replace(home / FILE)
        return self


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Let one command at a time change the stack of a folder; the lock goes with the process that holds it."""
    folder = _opened(home)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LocalStackFailed(f"another command is at work on the local stack in {home}; wait for it") from error
        yield
    finally:
        os.close(folder)


def is_locked(home: Path) -> bool:
    """Return True if a command is at work on the stack of a folder."""
    try:
        folder = os.open(home, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(folder)


def _opened(home: Path) -> int:
    """Open the folder, made if it is not there; InvalidInput if it cannot be, or holds what is not of a local stack."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        held = {path.name for path in home.iterdir()}
        folder = os.open(home, os.O_RDONLY)
    except OSError as error:
        raise InvalidInput(f"--home {home}: no folder can be made there: {error.strerror}") from error
    # The whole folder goes when the stack goes.
    if held and held.isdisjoint(TRACES) and home.name != FOLDER:
        os.close(folder)
        raise InvalidInput(f"--home {home} holds something other than a local stack; name a new folder")
    if not os.access(home, os.W_OK):
        os.close(folder)
        raise InvalidInput(f"--home {home} cannot be written to; name another folder")
    return folder
