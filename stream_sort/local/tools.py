"""The tools that the local stack runs, each in an environment of its own, and what they see of this one."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

from stream_sort.errors import LocalStackFailed

HOST = "127.0.0.1"
REGION = "us-east-1"
# Made up: the local AWS takes this one for the root of its account.
ACCESS_KEY = "local"
# They would show the functions what is not in their layer.
PYTHON_PATHS = ("PYTHONPATH", "PYTHONHOME")


def tool(package: str, program: str) -> list[str]:
    """The command that runs a program of a package, which uv installs on first use, apart from this one's pins."""
    return [find_uv(), "tool", "run", "--from", package, program]


def find_uv() -> str:
    """Where uv is."""
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
    """This process's environment, without the user's AWS: nothing here may reach a real account."""
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
