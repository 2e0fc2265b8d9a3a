"""Run the SAM command line: build the functions and the layer, as they are built for AWS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stream_sort.errors import LocalStackFailed
from stream_sort.local.tools import environment, tool

VERSION = "1.170.0"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
LOG_TAIL = 25


@dataclass(frozen=True, slots=True)
class Sam:
    """SAM for one project; what it writes goes to `log`. Ends with whoever runs it."""

    root: Path
    build_dir: Path
    log: Path

    def build(self) -> None:
        """Build the layer and the functions into `build_dir`; the source folder stays as it is."""
        self._run(
            "build",
            *("--template-file", str(self.root / "template.yaml"), "--build-dir", str(self.build_dir)),
            # Otherwise the whole folder is copied first, virtual environments included.
            "--build-in-source",
            *("--parameter-overrides", f"PythonRuntime=python{PYTHON}"),
        )

    def _run(self, *words: str) -> None:
        with self.log.open("ab") as log:
            began = log.tell()
            process = subprocess.Popen(  # noqa: S603  # our own command
                [*tool(f"aws-sam-cli=={VERSION}", "sam"), *words],
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                start_new_session=True,
            )
            try:
                code = process.wait()
            except BaseException:
                # A Ctrl-C: nothing that was started goes on.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
        if code != 0:
            said = self.log.read_bytes()[began:].decode(errors="replace").strip().splitlines()[-LOG_TAIL:]
            raise LocalStackFailed(f"sam {words[0]} failed ({self.log}):\n" + "\n".join(f"    {line}" for line in said))

    def _environment(self) -> dict[str, str]:
        base = environment()
        return {
            **base,
            # sam leaves its temporary files behind; here they go when the stack goes.
            "TMPDIR": str(self.log.parent),
            # sam build wants a Python of the functions' version: this one; so does the layer's bytecode.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), base.get("PATH", os.defpath)]),
            "LAMBDA_PYTHON": PYTHON,
            "SAM_CLI_TELEMETRY": "0",
        }
