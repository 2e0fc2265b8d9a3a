"""Messages of a file, lazily: JSON lines, or one JSON array; and the file of those that `put` refused.

Lines of files that we write ourselves are known: each holds a message, and is none.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stream_sort.cli.output import json_line
from stream_sort.errors import InvalidInput
from stream_sort.formats.json_text import loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from stream_sort.model.message import KeyNames

BOM = b"\xef\xbb\xbf"
REPLAYED = frozenset({"queue", "seq", "item"})
LINE, ELEMENT = "line", "element"
OF_REFUSALS = frozenset({"reason", "message"})
SEVERAL_LINES = "; is it a message over several lines? Put it on one line, or into [ ]"
# What has no name of its own, such as <(...) of a shell, is as stdin is.
NAMELESS = ("/dev/", "/proc/")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A document and where it stood: on a line, or as which element of an array.

    `error` says why there is none. `size` is in bytes of the file.
    """

    place: int
    document: Any
    size: int
    error: str = ""
    unit: str = LINE


@contextmanager
def opened(name: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """Open a file, or stdin for `-`, and how long it is, if that is known; InvalidInput if it cannot be read."""
    if name == "-":
        yield sys.stdin.buffer, None
        return
    path = Path(name)
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidInput(f"{name}: {error.strerror}") from error
    with file:
        yield file, path.stat().st_size if path.is_file() else None


def is_file(name: str, path: Path) -> bool:
    """Return True if a path leads to the very file that is read, by whatever name or link."""
    try:
        there = path.stat()
        read = os.fstat(sys.stdin.fileno()) if name == "-" else Path(name).stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(read.st_mode) and os.path.samestat(read, there)


def entries(file: BinaryIO, name: str = "-") -> Iterator[FileEntry]:
    """Yield all entries of a file: of an array its elements, numbered from 1, else of each line that is not blank."""
    is_first = True
    for number, raw in enumerate(file, 1):
        line = (raw.removeprefix(BOM) if number == 1 else raw).strip()
        if is_first and line.startswith(b"["):
            yield from _elements(line + b"\n" + file.read(), name)
            return
        if line:
            is_first = False
            yield _entry(number, line, len(raw))


def comes_once(name: str) -> bool:
    """Return True if what is read cannot be read again: stdin, a pipe, a device."""
    try:
        return name == "-" or not stat.S_ISREG(Path(name).stat().st_mode)
    except (OSError, ValueError):
        return False


def problem_of(document: Any, keys: KeyNames) -> str:
    """Return why a document is no message but has one inside, and how to put that; empty if it is no such line."""
    if not isinstance(document, dict):
        return ""
    if is_refusal(document) and keys.queue not in document:
        return "a line of a rejects file; put the message in it, once it is corrected: jq -c .message FILE"
    if document.keys() != REPLAYED or not isinstance(document["item"], dict):
        return ""
    item = document["item"]
    if (item.get(keys.queue), item.get(keys.seq)) != (document["queue"], document["seq"]):
        return ""
    return (
        "a line of backfill --sink jsonl; the message is its item: use backfill --sink table, which puts messages as "
        "they were, or put what jq 1.7 or newer prints: jq -c .item FILE (bytes stay text)"
    )


def is_refusal(document: Any) -> bool:
    """Return True if a document is one of a file of rejects."""
    return isinstance(document, dict) and any(document.keys() == {unit} | OF_REFUSALS for unit in (LINE, ELEMENT))


def _elements(text: bytes, name: str) -> Iterator[FileEntry]:
    try:
        documents = loads(text)
    except InvalidInput as error:
        raise InvalidInput(f"{'stdin' if name == '-' else name}: {error}") from None
    share = len(text) // max(1, len(documents))
    for number, document in enumerate(documents, 1):
        yield FileEntry(number, document, share, unit=ELEMENT)


def _entry(number: int, line: bytes, size: int) -> FileEntry:
    try:
        return FileEntry(number, loads(line), size)
    except InvalidInput as error:
        hint = SEVERAL_LINES if line.startswith(b"{") and not line.endswith(b"}") else ""
        return FileEntry(number, line.decode(errors="replace"), size, f"{error}{hint}")


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
            raise InvalidInput(f"--rejects {path}: that is the file to put; give another")
        rejects = cls(path, keeps=comes_once(file))
        if wanted is not None or comes_once(file):
            rejects.check()
        return rejects

    def check(self) -> None:
        """Raise InvalidInput if nothing can be written there. A pipe is not tried: to close it would end its reader."""
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
        """End a run. If it refused nothing, remove what an earlier one left, if it is such a file."""
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
