"""The user's own handler: the file it is in, a trial of it, and the code of the process function with it."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

from stream_sort.errors import InvalidInput, LocalStackFailed
from stream_sort.local.builds import zipped
from stream_sort.local.project import project_root
from stream_sort.local.tools import REGION, environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.local.ministack import MiniStack

TAKEN = ("app", "stream_sort")
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


@dataclass(frozen=True, slots=True)
class HandlerFile:
    """A user's own handler: a function in a Python file."""

    path: Path
    function: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `my_handler.py:handle`; InvalidInput says what is wrong with it."""
        name, _, function = text.rpartition(":")
        path = Path(name or text).expanduser().resolve()
        if not name or not function.isidentifier():
            raise InvalidInput(f"handler {text!r}: must be FILE:FUNCTION, such as my_handler.py:handle")
        if path.suffix != ".py":
            raise InvalidInput(f"handler {text!r}: name its file with .py, such as {path.stem}.py:{function}")
        if not path.stem.isidentifier() or path.stem in TAKEN:
            raise InvalidInput(
                f"handler file {path.name!r}: must be a name that Python can import, and not {' or '.join(TAKEN)}"
            )
        handler = cls(path, function)
        handler.check()
        return handler

    def __str__(self) -> str:
        return f"{self.path}:{self.function}"

    @property
    def reference(self) -> str:
        """Return what the template's parameter Handler takes."""
        return f"{self.path.stem}:{self.function}"

    def check(self) -> None:
        """Raise InvalidInput unless the file is Python and has the function."""
        try:
            tree = ast.parse(self.path.read_text(encoding="utf-8"), str(self.path))
        except OSError as error:
            raise InvalidInput(f"handler file {self.path}: {error.strerror}") from error
        except (SyntaxError, ValueError) as error:
            raise InvalidInput(f"handler file {self.path} is not Python: {error}") from error
        names = {name for statement in tree.body for name in _bound_by(statement)}
        if self.function not in names:
            raise InvalidInput(f"handler file {self.path} has no {self.function!r} at its top level")

    @property
    def digest(self) -> str:
        """Return a text that is another one if the file or the function is."""
        try:
            return sha256(f"{self}\n".encode() + self.path.read_bytes()).hexdigest()
        except OSError as error:
            raise InvalidInput(f"handler file {self.path}: {error.strerror}") from error

    def copy_to(self, folder: Path) -> None:
        """Put the file beside the function's own code."""
        shutil.copy(self.path, folder)


def _bound_by(statement: ast.stmt) -> list[str]:
    """Return the names that a statement at the top level of a module binds."""
    match statement:
        # One that is async binds its name, too; why it cannot be called is said when it is tried.
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names]
    return []


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
            f"the handler's module is still being imported after {LIMIT:.0f} s; do the work when it is called"
        ) from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


@dataclass(frozen=True, slots=True)
class ProcessCode:
    """The folders of one build: `built` is what is deployed, `plain` the same before a handler was put in."""

    built: Path
    plain: Path
    layer: Path

    @classmethod
    def of(cls, home: Path) -> ProcessCode:
        """Return the code in the folder of a local stack."""
        build = home / "build"
        return cls(build / "ProcessFunction", home / "process", build / "StreamSortLayer" / "python")

    @property
    def is_built(self) -> bool:
        """Return True if a handler can be put in without a build."""
        return self.plain.is_dir() and self.layer.is_dir()

    def put_handler(self, file: HandlerFile | None) -> None:
        """Put the handler into what was just built; InvalidInput if the function could not import it."""
        shutil.rmtree(self.plain, ignore_errors=True)
        shutil.copytree(self.built, self.plain)
        if file is not None:
            file.copy_to(self.built)
            # Now with what the function will have, and no more.
            try_handler(file, bare=[self.built, self.layer])

    def packed(self, file: HandlerFile | None) -> bytes:
        """Return the code with this handler as a zip file; InvalidInput if the function could not import it."""
        with TemporaryDirectory(prefix="stream-sort-process-") as name:
            folder = Path(name) / "function"
            shutil.copytree(self.plain, folder)
            if file is not None:
                file.copy_to(folder)
                try_handler(file, bare=[folder, self.layer])
            return zipped(folder)


def put_code(aws: MiniStack, function: str, packed: bytes) -> None:
    """Give a deployed function this code, and wait until it has it."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  # as MiniStack.client

    often = {"Delay": 0.2, "MaxAttempts": 300}
    with closing(aws.client("lambda")) as client:
        try:
            client.update_function_code(FunctionName=function, ZipFile=packed)
            client.get_waiter("function_updated_v2").wait(FunctionName=function, WaiterConfig=often)
        except (BotoCoreError, ClientError) as error:
            raise LocalStackFailed(f"the local AWS did not take the code of process: {error}") from error
