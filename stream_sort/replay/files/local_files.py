"""Files in a directory of this machine; see Storage. The directory is made with the first file."""

from __future__ import annotations

import errno
import os
import uuid
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.errors import AccessDenied, FileMissing, StoreMisconfigured, StoreUnavailable
from stream_sort.replay.files.readable import Readable

if TYPE_CHECKING:
    from collections.abc import Iterator

# A writer that dies leaves such a file behind; it is nobody's name.
UNFINISHED = ".unfinished-"
# What a disk or a network file system says that fails for now.
PASSING = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY, errno.ECONNRESET})


class LocalFiles:
    """Files in a directory: a file is written elsewhere and then moved or linked, so it is never seen in part."""

    def __init__(self, root: str) -> None:
        try:
            self._root = Path(root).expanduser().absolute()
        except RuntimeError as error:
            # A ~ with the name of nobody.
            raise StoreMisconfigured(f"{root}: {error}; give the whole path") from None

    def read(self, name: str) -> bytes:
        """See Storage."""
        with self._named(name):
            return self._path(name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """See Storage."""
        with self._named(name), _beside(self._path(name), content) as temporary:
            temporary.replace(self._path(name))

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """See Storage."""
        with self._named(name), _beside(self._path(name), content) as temporary:
            try:
                # A link is refused if the name is taken; a rename would replace it.
                self._path(name).hardlink_to(temporary)
            except FileExistsError:
                return False
            return True

    def list(self, prefix: str) -> list[str]:
        """See Storage."""
        top = self._root / prefix.rpartition("/")[0]
        names: list[str] = []
        with self._named(prefix):
            for folder, _, files in os.walk(top, onerror=_raise_unless_absent):
                within = Path(folder).relative_to(self._root)
                names += [(within / file).as_posix() for file in files if not file.startswith(UNFINISHED)]
        return sorted(name for name in names if name.startswith(prefix))

    def some_name(self) -> str | None:
        """See Storage. A folder that cannot be opened, such as lost+found, is the system's."""
        for folder, folders, files in os.walk(self._root):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for file in files:
                if not file.startswith("."):
                    return (Path(folder) / file).relative_to(self._root).as_posix()
        return None

    def size(self, name: str) -> int | None:
        """See Storage."""
        with self._named(name):
            try:
                return self._path(name).stat().st_size
            except (FileNotFoundError, NotADirectoryError):
                return None

    def open(self, name: str) -> Readable:
        """See Storage."""
        from pyarrow import OSFile  # noqa: PLC0415  # a job says what it takes without Spark, too

        with self._named(name):
            file = OSFile(str(self._path(name)), "rb")
        return Readable(file, partial(self._named, name))

    def delete(self, name: str) -> None:
        """See Storage."""
        with self._named(name):
            self._path(name).unlink(missing_ok=True)

    def sweep(self) -> None:
        """See Storage."""
        with self._named(""):
            for left in self._root.rglob(f"{UNFINISHED}*"):
                left.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._root / name

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Turn errors of the system into ours."""
        at = self._root / name
        try:
            yield
        except FileNotFoundError as error:
            raise FileMissing(f"no file {str(at)!r}; is the address right, and was it moved or deleted?") from error
        except PermissionError as error:
            raise AccessDenied(f"{str(at)!r}: access denied; see who owns it: {error.strerror}") from error
        except OSError as error:
            if error.errno in PASSING:
                raise StoreUnavailable(f"{str(at)!r}: {error.strerror}; see to its disk, and try again") from error
            raise StoreMisconfigured(f"{str(at)!r}: {error.strerror or error}; is the address a directory?") from error


@contextmanager
def _beside(path: Path, content: bytes) -> Iterator[Path]:
    """Write the content to a file in the directory of `path`, and remove what is left of it at the end."""
    _make(path.parent)
    temporary = path.parent / f"{UNFINISHED}{uuid.uuid4().hex}"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            # Whoever is told that it is stored may delete the original.
            os.fsync(file.fileno())
        yield temporary
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _make(folder: Path) -> None:
    """See to it that a folder is there, on disk with all those above it."""
    absent = list(takewhile(lambda one: not one.exists(), (folder, *folder.parents)))
    folder.mkdir(parents=True, exist_ok=True)
    for made in absent:
        _sync(made.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _raise_unless_absent(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
