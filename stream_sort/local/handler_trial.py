"""Try a user's handler: import it as the process function will, in a process of its own, which it may well kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput
from stream_sort.local.project import project_root
from stream_sort.local.tools import REGION, environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.local.project import HandlerFile

# Lambda gives a function 10 seconds to start; a busy machine needs more.
LIMIT = 30.0
PASSED = "passed"
# A call to AWS fails here, and may well not do so in the function.
SCRIPT = f"""
import sys
from pathlib import Path
reference, verdict, *folders = sys.argv[1:]
sys.path[:0] = folders
from stream_sort.aws_lambda.handlers import load_handler
from stream_sort.errors import SettingsError
said = "{PASSED}"
try:
    load_handler(reference)
except SettingsError as error:
    cause = error.__cause__
    if cause is None or not type(cause).__module__.startswith("botocore."):
        said = str(error)
Path(verdict).write_text(said, encoding="utf-8")
"""
NEXT_STEP = "only this file goes into the function: put what it imports into functions/process, or into the file itself"


def try_handler(file: HandlerFile, *, bare: Sequence[Path] = ()) -> None:
    """Raise InvalidInput, with the cause, unless the handler can be imported and called.

    What this Python has installed is there, unless `bare` names folders: then only what is in those.
    """
    with TemporaryDirectory(prefix="stream-sort-handler-") as name:
        folder, verdict = Path(name) / "function", Path(name) / "verdict"
        folder.mkdir()
        file.copy_to(folder)
        places = [folder, *(bare or [project_root() / "functions" / "process", Path(__file__).parents[2]])]
        flags = ["-I", "-S"] if bare else ["-I"]
        command = [sys.executable, *flags, "-c", SCRIPT, file.reference, str(verdict), *map(str, places)]
        ended = _run(command, folder)
        said = verdict.read_text(encoding="utf-8") if verdict.exists() else f"ends the process at import: {ended}"
    if said != PASSED:
        hint = f"; {NEXT_STEP}" if "which is not installed" in said else ""
        raise InvalidInput(f"handler {file}: {said}{hint}")


def _run(command: list[str], folder: Path) -> str:
    """Run it to its end, and answer how it ended; what it started goes with it."""
    process = subprocess.Popen(  # noqa: S603  # the user's own handler
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Nothing listens there: whatever it calls, it reaches nobody.
        env={**environment(), "AWS_REGION": REGION, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
        start_new_session=True,
    )
    try:
        code = process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        raise InvalidInput(
            f"the handler's module is not done with its import after {LIMIT:.0f} s; do the work when it is called"
        ) from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
