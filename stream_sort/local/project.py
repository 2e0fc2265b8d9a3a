"""The sources of the serverless app, in a checkout or in the wheel, and the user's own handler for it."""

from __future__ import annotations

import ast
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

from stream_sort.errors import InvalidInput, LocalStackFailed
from stream_sort.local.tools import find_uv

PARTS = ("template.yaml", "Makefile", "functions")
# The folder of the package in which the wheel has what stands beside the package in a checkout; see pyproject.toml.
WHEEL_APP = "app"
TAKEN = ("app", "stream_sort")


def project_root() -> Path:
    """Return the folder with template.yaml and the functions.

    The checkout that this package is in, else the working directory if it is a checkout, else what the wheel brought.
    """
    places = [Path(__file__).parents[2], Path.cwd(), _wheel_app()]
    for place in places:
        if all((place / part).exists() for part in PARTS):
            return place
    raise LocalStackFailed(
        f"no template.yaml with its functions in {' or '.join(map(str, places))}; the local stack deploys them: "
        "run this in a checkout of stream_sort, or install its wheel"
    )


def has_app() -> bool:
    """Return True if a local stack can be brought up from here."""
    try:
        project_root()
    except LocalStackFailed:
        return False
    return True


def is_from_wheel() -> bool:
    """Return True if the app is the wheel's, and no checkout is in reach."""
    return project_root() == _wheel_app()


def source_folder(home: Path) -> Path:
    """Return the folder that sam builds from: the checkout, or a copy in `home` of the wheel's files, laid out as one.

    sam and make write beside the sources, and an installed package is not to be written to.
    """
    if not is_from_wheel():
        return project_root()
    folder, package = home / "sources", Path(__file__).parents[1]
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(project_root(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__", WHEEL_APP))
    # The Makefile would install a uv of its own there.
    uv = folder / ".tools" / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    uv.symlink_to(find_uv())
    return folder


def _wheel_app() -> Path:
    return Path(__file__).parents[1] / WHEEL_APP


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
        """What the template's parameter Handler takes."""
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
    """The names that a statement at the top level of a module binds."""
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
