"""The files of an archive in a dict: the place behind its storage."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pyarrow as pa

from stream_sort.errors import FileMissing
from stream_sort.replay.files.readable import Readable
from stream_sort.replay.origins.archive.manifest import is_manifest

if TYPE_CHECKING:
    from tests.simulation.archive.fuse import Fuse


class MemoryFiles:
    """A Place in a dict. `overwritten` are the manifests in whose places others were written."""

    def __init__(self, fuse: Fuse) -> None:
        self.contents: dict[str, bytes] = {}
        self.overwritten: list[str] = []
        self._fuse = fuse

    def read(self, name: str) -> bytes:
        if name not in self.contents:
            raise FileMissing(name)
        return self.contents[name]

    def write(self, name: str, content: bytes) -> None:
        def change() -> None:
            if is_manifest(name) and self.contents.get(name, content) != content:
                self.overwritten.append(name)
            self.contents[name] = content

        self._fuse.through(change)

    def put_if_absent(self, name: str, content: bytes) -> bool:
        def change() -> bool:
            is_absent = name not in self.contents
            self.contents.setdefault(name, content)
            return is_absent

        return self._fuse.through(change)

    def list(self, prefix: str) -> list[str]:
        return sorted(name for name in self.contents if name.startswith(prefix))

    def some_name(self) -> str | None:
        return next(iter(self.contents), None)

    def size(self, name: str) -> int | None:
        return len(self.contents[name]) if name in self.contents else None

    def open(self, name: str) -> Readable:
        return Readable(pa.BufferReader(self.read(name)), nullcontext)

    def delete(self, name: str) -> None:
        self._fuse.through(lambda: self.contents.pop(name, None))

    def sweep(self) -> None:
        """Whoever dies leaves nothing half written here."""
