"""What the local stack uses of this machine: tools in environments of their own, ports, and processes."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from stream_sort.errors import LocalStackFailed, PortTaken

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
REGION = "us-east-1"
# Made up: the local AWS takes this one for the root of its account.
ACCESS_KEY = "local"
# They would show the functions what is not in their layer.
PYTHON_PATHS = ("PYTHONPATH", "PYTHONHOME")
# Where AWS emulators listen by custom.
USUAL_PORT = 4566
# MiniStack starts each as `python TMPDIR/ministack-lambda-FUNCTION-RANDOM/_worker.py`.
WORKER = r"^\s*(\d+)\s.*{home}/ministack-lambda-{function}-\w+/_worker\.py$"


def tool(package: str, program: str) -> list[str]:
    """Return the command that runs a program of a package; uv installs it on first use, apart from this one's."""
    return [find_uv(), "tool", "run", "--from", package, program]


def find_uv() -> str:
    """Return the path of uv."""
    with suppress(ImportError, FileNotFoundError):
        from uv import find_uv_bin  # noqa: PLC0415  # comes with the `cli` extra only

        return find_uv_bin()
    found = shutil.which("uv")
    if found is None:
        raise LocalStackFailed(
            "uv, which runs MiniStack, is not installed; pip install uv, or pip install '.[cli]' in the checkout"
        )
    return found


def environment() -> dict[str, str]:
    """Return this process's environment, without the user's AWS: nothing here may reach a real account."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("AWS_") and name not in PYTHON_PATHS
    }
    # A proxy that the environment names cannot reach this machine.
    direct = ",".join(filter(None, [kept.get("NO_PROXY") or kept.get("no_proxy"), HOST, "localhost"]))
    return {
        **kept,
        "NO_PROXY": direct,
        "no_proxy": direct,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": ACCESS_KEY,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def choose_port(wanted: int | None, last: int) -> int:
    """Return the wanted port, or raise PortTaken; if none is wanted, the last one, the usual one, or any."""
    if wanted is None:
        return next(filter(is_free, _candidates(last)))
    if not is_free(wanted):
        raise PortTaken(wanted)
    return wanted


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Return True if nobody listens on a port now."""
    with socket.socket() as probe:
        if probe.connect_ex((HOST, port)) == 0:
            return False
    with socket.socket() as probe:
        # As servers do: what a closed connection left behind does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _candidates(last: int) -> Iterator[int]:
    yield from filter(None, (last, USUAL_PORT))
    while True:
        yield free_port()


def worker_pids(home: str, function: str) -> list[int]:
    """Return the process ids of a function's workers, of the MiniStack with its temporary files in `home`."""
    asked = ["ps", "-A", "-ww", "-o", "pid=,args="]
    table = subprocess.run(asked, capture_output=True, text=True, check=True).stdout  # noqa: S603  # no input
    pattern = WORKER.format(home=re.escape(home), function=re.escape(function))
    return [int(pid) for pid in re.findall(pattern, table, re.MULTILINE)]
