"""Where the page goes: a file that is replaced as a whole or not at all, and never one that is something else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from stream_sort.cli.page.elements import GENERATOR
from stream_sort.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")
# The name of who made a page stands in its first lines.
BEGINNING = 1_000


def check_target(path: Path, *, force: bool) -> None:
    """InvalidInput if a page cannot, or should not, be put there."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it, such as {path / 'report.html'}")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}; make it, or name another with -o")
    if path.is_file() and not force and not _is_ours(path):
        raise InvalidInput(f"{path} is no report of ours; name another file with -o, or replace it with --force")


def put_page(path: Path, page: str) -> int:
    """Write it; whoever opens the file meanwhile sees the old page or the new one. Tells its size in bytes."""
    written = page.encode()
    _usable(path, lambda: _put(path, written))
    return len(written)


def _put(path: Path, written: bytes) -> None:
    if path.exists() and not path.is_file():
        # A pipe or a device: there is nothing to be replaced.
        path.write_bytes(written)
        return
    # What a link leads to is replaced, not the link.
    path = path.resolve()
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        beside.write_bytes(written)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    def beginning() -> bytes:
        with path.open("rb") as file:
            return file.read(BEGINNING)

    return GENERATOR.encode() in _usable(path, beginning)


def _usable(path: Path, act: Callable[[], T]) -> T:
    try:
        return act()
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}; name another file with -o") from error
