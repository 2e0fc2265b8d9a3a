"""A rate that a whole job keeps to, however many tasks it has: one process counts, all ask it how long to wait.

A share for each task would leave the tail of a job with its small share while the others have ended.
"""

from __future__ import annotations

import json
import secrets
import socket
import socketserver
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stream_sort.errors import SettingsError, StoreUnavailable
from stream_sort.replay.files.json_content import value_of

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_WAIT_FOR_KEEPER = 10.0
MAX_QUESTION = 1_000


class Pacer:
    """Says how long to wait after each use so that the units used never run ahead of the rate."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._free_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def wait_after(self, job: str, rate: float, units: float) -> float:
        """Return seconds to wait, now that a task of the job has used so many units."""
        with self._lock:
            now = self._monotonic()
            self._free_at[job] = max(now, self._free_at.get(job, now)) + units / rate
            return self._free_at[job] - now


class RateKeeper:
    """Runs a Pacer in this process and answers all tasks, wherever they are."""

    def __init__(self, host: str) -> None:
        self.pacer = Pacer()
        self.secret = secrets.token_hex(16)
        self._server = _Server((host, 0), _Answer)
        self._server.keeper = self
        threading.Thread(target=self._server.serve_forever, name="rate keeper", daemon=True).start()

    @property
    def address(self) -> KeeperAddress:
        """What a task needs to find it."""
        host, port = self._server.server_address[:2]
        return KeeperAddress(str(host), int(port), self.secret)

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


@dataclass(frozen=True, slots=True)
class KeeperAddress:
    """Where a rate is kept, and the word that opens it."""

    host: str
    port: int
    secret: str


@dataclass(frozen=True, slots=True)
class Rate:
    """A job's rate as each of its tasks keeps to it; picklable."""

    units_a_second: float
    keeper: KeeperAddress
    job: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        if not 0 < self.units_a_second < float("inf"):
            raise SettingsError(f"maxReadUnits is {self.units_a_second}; it must be greater than 0 and finite")

    def used(self, units: float) -> None:
        """Wait for as long as the job must, after it has used so many units."""
        try:
            time.sleep(self.wait_after(units))
        except OSError as error:
            raise StoreUnavailable(
                f"the rate keeper of this job at {self.keeper.host}:{self.keeper.port} does not answer: {error}; "
                "is the driver reachable from its executors?",
                table="-",
                operation="maxReadUnits",
            ) from error

    def wait_after(self, units: float) -> float:
        """Ask how long to wait; a line for each question, because pages are far between and tasks end anyhow."""
        where = (self.keeper.host, self.keeper.port)
        with socket.create_connection(where, LONGEST_WAIT_FOR_KEEPER) as line, line.makefile("rw") as talk:
            talk.write(json.dumps([self.keeper.secret, self.job, self.units_a_second, units]) + "\n")
            talk.flush()
            answer = talk.readline()
        if not answer:
            raise OSError("it closed the line")
        return float(answer)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    keeper: RateKeeper


class _Answer(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        try:
            secret, job, rate, units = value_of(self.rfile.readline(MAX_QUESTION))
            is_ours = secrets.compare_digest(str(secret).encode(), self.server.keeper.secret.encode())
        except (TypeError, ValueError):
            # Anybody may knock at an open port.
            return
        if is_ours:
            wait = self.server.keeper.pacer.wait_after(str(job), float(rate), float(units))
            self.wfile.write(f"{wait}\n".encode())
