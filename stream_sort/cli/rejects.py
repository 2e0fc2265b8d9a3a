"""The file of what `put` refused: where it goes, and that nothing of an earlier run is lost in it."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stream_sort.cli.message_file import LINE, comes_once, is_file, is_refusal
from stream_sort.cli.output import json_line
from stream_sort.errors import InvalidInput
from stream_sort.formats.json_text import loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What has no name of its own, such as <(...) of a shell, is as stdin is.
NAMELESS = ("/dev/", "/proc/")


class RefusedEntry(NamedTuple):
    """An entry that was refused; `unit` is what its place counts."""

    place: int
    reason: str
    document: Any
    unit: str = LINE


class Rejects:
    """The file of what was refused, a JSON line each: where it stood, why, and what it was. None is made in vain.

    One that is there from another run is written over, or removed if nothing is refused: all of it is in the file that
    was put. `keeps` says that it is nowhere else, as of stdin: then it is left alone, and the next free name is taken.
    """

    def __init__(self, path: Path, *, keeps: bool = False) -> None:
        self.path = next(filter(_is_free, _names(path))) if keeps else path
        self.keeps = keeps
        self.first: RefusedEntry | None = None
        self.last = ""

    @classmethod
    def of(cls, file: str, wanted: Path | None) -> Rejects:
        """Return the rejects of a file that is put; InvalidInput at once if they could not be written."""
        default = "stdin" if file == "-" or file.startswith(NAMELESS) else file
        path = wanted or Path(f"{default}.rejects")
        if is_file(file, path):
            raise InvalidInput(f"--rejects {path}: that is the file which is put; give another")
        rejects = cls(path, keeps=comes_once(file))
        if wanted is not None or comes_once(file):
            rejects.check()
        return rejects

    def check(self) -> None:
        """InvalidInput if nothing can be written there. A pipe is not tried: to close it would end who reads it."""
        try:
            if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
                return
            is_new = not self.path.exists()
            self.path.open("a").close()
            if is_new:
                self.path.unlink()
        except OSError as error:
            raise self._problem(error) from error

    def add(self, refused: Iterable[RefusedEntry]) -> None:
        """Note some, by their place."""
        found = sorted(refused, key=lambda one: one.place)
        if not found:
            return
        text = "".join(
            json_line({one.unit: one.place, "reason": one.reason, "message": one.document}) + "\n" for one in found
        )
        try:
            with self.path.open("a" if self.keeps or self.first else "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise self._problem(error) from error
        self.first = self.first or found[0]
        self.last = found[-1].reason

    def end(self) -> None:
        """Nothing was refused after all: remove what an earlier run left, if it is such a file."""
        if self.keeps or self.first:
            return
        with suppress(OSError, InvalidInput), self.path.open("rb") as file:
            if is_refusal(loads(file.readline())):
                self.path.unlink()

    def _problem(self, error: OSError) -> InvalidInput:
        return InvalidInput(f"--rejects {self.path}: {error.strerror}; give a file that can be written")


def _names(path: Path) -> Iterator[Path]:
    """Return the name that is wanted, then others like it."""
    return chain([path], (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2)))


def _is_free(path: Path) -> bool:
    """Return True if nothing is lost there: no file, an empty one, or none that keeps anything."""
    try:
        return not path.is_file() or path.stat().st_size == 0
    except OSError:
        return True
