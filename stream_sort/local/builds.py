"""Build the functions and the layer with sam, as for AWS, and keep what was built: the same sources are built once."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.errors import LocalStackFailed
from stream_sort.local.tools import environment, tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAM_VERSION = "1.170.0"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
LOG_TAIL = 25
FILES = ("template.yaml", "Makefile", "pyproject.toml", "uv.lock")
FOLDERS = ("functions", "stream_sort")
# Not in the layer; a test compares it with the Makefile.
LEFT_OUT = ("stream_sort/cli", "stream_sort/local", "stream_sort/replay", "stream_sort/testing")
# Beside what `make build` makes; `make clean` removes both.
KEPT = Path(".aws-sam", "local")
# What the template calls it; so is its folder.
LAYER = "StreamSortLayer"
# What a zip file can hold for a time.
LONG_AGO = (1980, 1, 1, 0, 0, 0)


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
                [*tool(f"aws-sam-cli=={SAM_VERSION}", "sam"), *words],
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


def fingerprint(root: Path) -> str:
    """Return a text that is another one if a source of the layer, of a function or of the template is."""
    found = hashlib.sha256(f"{SAM_VERSION} {PYTHON}".encode())
    for path in sorted(_sources(root)):
        text = path.read_bytes()
        found.update(f"{path.relative_to(root)} {len(text)}\n".encode() + text)
    return found.hexdigest()


def _sources(root: Path) -> Iterator[Path]:
    yield from (root / name for name in FILES if (root / name).is_file())
    left_out = tuple(root / name for name in LEFT_OUT)
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and not any(map(path.is_relative_to, left_out)):
                yield path


def build(sam: Sam, sources: str, report: Callable[[str], None]) -> None:
    """Put what sam makes of the sources with this fingerprint into the build folder of `sam`.

    The last build is kept, whole or not at all. Who comes while another one builds waits, and gets the same.
    """
    kept = sam.root / KEPT
    kept.mkdir(parents=True, exist_ok=True)
    with _locked(kept, report):
        made = kept / sources
        if made.is_dir():
            report("taking the layer and the functions as they were built before")
        else:
            report("building the layer and the functions (sam build)")
            made = _build_anew(sam, made)
        shutil.rmtree(sam.build_dir, ignore_errors=True)
        # The layer is large, and nobody changes it; into a function's folder a handler may be put.
        shutil.copytree(made, sam.build_dir, copy_function=_link_layer)


def _link_layer(source: str, target: str) -> None:
    if LAYER in Path(source).parts:
        with suppress(OSError):
            os.link(source, target)
            return
    shutil.copy2(source, target)


def _build_anew(sam: Sam, made: Path) -> Path:
    for other in made.parent.iterdir():
        shutil.rmtree(other, ignore_errors=True)
    unfinished = made.with_name("unfinished")
    replace(sam, build_dir=unfinished).build()
    # Of sources that were changed meanwhile, nobody knows what was built.
    return unfinished.rename(made) if fingerprint(sam.root) == made.name else unfinished


@contextmanager
def _locked(folder: Path, report: Callable[[str], None]) -> Iterator[None]:
    """Let one command at a time build; the lock goes with the process that holds it."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another command, which is building the same")
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def zipped(folder: Path) -> bytes:
    """Return a zip file of what is in a folder. Nothing is compressed: it stays on this machine, and is read often."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(str(path.relative_to(folder)), LONG_AGO)
                entry.external_attr = 0o644 << 16
                file.writestr(entry, path.read_bytes())
    return packed.getvalue()
