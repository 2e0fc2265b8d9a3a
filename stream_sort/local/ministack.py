"""Start and stop MiniStack, an AWS on this machine: DynamoDB with streams, Lambda, SQS and more, no Docker.

Prints and logs nothing: a callback reports what goes on while it starts.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from stream_sort.errors import LocalStackFailed, PortTaken
from stream_sort.local import leash
from stream_sort.local.tools import ACCESS_KEY, HOST, REGION, environment, free_port, is_free, tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

VERSION = "1.5.33"
# A first start downloads about 60 MB of packages.
START_DEADLINE = 300.0
STOP_DEADLINE = leash.PATIENCE + 5.0
POLL = 0.05
SLOW_START = 10.0
LOG_TAIL = 15
# A word that it repeats in its answer to the question for its health.
IDENTITY = "MINISTACK_EDITION"
NO_PROFILES = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}


class MiniStack:
    """One MiniStack of our own, on a free port, with its state in a temporary directory.

    It lives from `start` to `stop`, or inside `with`; it is also gone, with all its processes and files, soon
    after this process ends in whatever way, be it by SIGKILL. `report` is called with a line for each step.
    With `enforce_roles`, functions may do what their roles allow, and no more.
    """

    def __init__(
        self,
        *,
        report: Callable[[str], None] | None = None,
        deadline: float = START_DEADLINE,
        enforce_roles: bool = False,
    ) -> None:
        self._report = report or (lambda _: None)
        self._deadline = deadline
        self._enforce_roles = enforce_roles
        self._process: subprocess.Popen[bytes] | None = None
        self._state_dir = Path()
        self._log: IO[bytes] | None = None
        self._told = 0
        self.port = 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Return the endpoint of all its services."""
        return f"http://{HOST}:{self.port}"

    @property
    def state_dir(self) -> Path:
        """Return the folder with its files, and those of the functions that it runs."""
        return self._state_dir

    @property
    def connection(self) -> dict[str, str]:
        """Return what `boto3.client` needs to reach it; the credentials are made up, and it takes any."""
        return {
            "endpoint_url": self.url,
            "region_name": REGION,
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": ACCESS_KEY,
        }

    def client(self, service: str, **options: Any) -> Any:
        """Return a new boto3 client of one of its services; close it when done."""
        import boto3  # noqa: PLC0415  # starting needs no SDK
        from botocore.config import Config  # noqa: PLC0415
        from botocore.session import Session  # noqa: PLC0415

        # No proxies: the environment may name one, which cannot reach this machine.
        options["config"] = Config(proxies={}).merge(options.get("config") or Config())
        # A session of its own: the default one is shared, and making clients from it is not thread-safe. And one that
        # knows nothing of the user's profiles, which may say anything.
        session = boto3.session.Session(botocore_session=Session(session_vars=NO_PROFILES))
        return session.client(service, **self.connection, **options)

    def start(self) -> Self:
        """Start it and wait until it is healthy; raises LocalStackFailed if it does not come up.

        PortTaken if another one was faster to listen on its port.
        """
        command = _command()
        self._prepare()
        self._report(f"starting MiniStack {VERSION} (a local AWS) on {self.url}")
        self._told = 0
        try:
            self._process = self._spawn(command, subprocess.PIPE)
            self._await_health()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it with all its processes and remove its state; harmless when it is not running."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(STOP_DEADLINE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._state_dir != Path():
            shutil.rmtree(self._state_dir, ignore_errors=True)

    @property
    def is_up(self) -> bool:
        """Return True if it answers."""
        return self._is_healthy()

    def log_lines(self) -> list[str]:
        """Return what it wrote so far."""
        if self._log is None:
            return []
        # pread: the file's own offset is where the child writes.
        number = self._log.fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode(errors="replace").splitlines()

    def _prepare(self) -> None:
        """Choose the port, make the folder and open the log."""
        self.port = free_port()
        self._state_dir = Path(tempfile.mkdtemp(prefix="stream-sort-ministack-"))
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed by stop

    def _spawn(self, command: list[str], held_by: int) -> subprocess.Popen[bytes]:
        """Start the command on a leash that ends with `held_by`, its stdin; see leash.py."""
        return subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "-I", leash.__file__, str(self._state_dir), *command],
            stdin=held_by,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**environment(), **self._settings()},
            start_new_session=True,
        )

    def _settings(self) -> dict[str, str]:
        state = str(self._state_dir)
        return {
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": HOST,
            "STATE_DIR": state,
            "S3_DATA_DIR": state,
            "TMPDIR": state,
            "PERSIST_STATE": "0",
            IDENTITY: self._identity,
            "LOG_LEVEL": "WARNING",
            "AUTH": "true" if self._enforce_roles else "false",
            # These two would listen on fixed ports, and on all interfaces.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
        }

    def _await_health(self) -> None:
        began = time.monotonic()
        warned = False
        while not self._is_healthy():
            waited = time.monotonic() - began
            if self._process is None or self._process.poll() is not None:
                if not is_free(self.port):
                    raise PortTaken(self.port)
                raise LocalStackFailed(f"MiniStack {VERSION} ended while it was starting.{self._log_tail()}")
            if waited > self._deadline:
                raise LocalStackFailed(f"MiniStack {VERSION} is not up after {waited:.0f} s.{self._log_tail()}")
            if waited > SLOW_START and not warned:
                warned = True
                self._report("still starting; the first start on a machine can take a minute")
            self._report_downloads()
            time.sleep(POLL)

    @property
    def _identity(self) -> str:
        return str(self.state_dir.resolve())

    def _is_healthy(self) -> bool:
        """Return True if it answers, and not another one that has its port now."""
        # Not urllib: it would go through a proxy if the environment names one.
        link = http.client.HTTPConnection(HOST, self.port, timeout=5)
        try:
            link.request("GET", "/_ministack/health")
            said = json.load(link.getresponse())
            return bool((said["version"], said["edition"]) == (VERSION, self._identity))
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            return False
        finally:
            link.close()

    def _report_downloads(self) -> None:
        """Pass on what the installer writes when packages are not there yet."""
        lines = self.log_lines()
        for line in lines[self._told :]:
            if line.startswith("Downloading "):
                self._report(f"downloading {line.removeprefix('Downloading ')}, once for this machine")
        self._told = len(lines)

    def _log_tail(self) -> str:
        lines = self.log_lines()[-LOG_TAIL:]
        return " Its log ends with:\n" + "\n".join(f"    {line}" for line in lines) if lines else " It wrote no log."


def _command() -> list[str]:
    return tool(f"ministack[full]=={VERSION}", "ministack")
