"""A file of a place, open for reading: what fails on the way is an error of the place, not of what the file holds."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import pyarrow as pa


class Readable(io.RawIOBase):
    """Reads at any place. pyarrow raises OSError both for storage that fails and for content that is damaged.

    So errors get their names here, where only storage can be their cause; pyarrow passes them on as they are.
    """

    def __init__(self, file: pa.NativeFile, named: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__()
        self._file = file
        self._named = named

    def readable(self) -> bool:
        """See IOBase."""
        return True

    def seekable(self) -> bool:
        """See IOBase."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read so many bytes, fewer only at the end of the file."""
        with self._named():
            content: bytes = self._file.read(None if size < 0 else size)
            return content

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """See IOBase."""
        with self._named():
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """See IOBase."""
        return int(self._file.tell())

    def size(self) -> int:
        """Return the bytes of the file."""
        with self._named():
            return int(self._file.size())

    def close(self) -> None:
        """See IOBase."""
        self._file.close()
        super().close()
