"""Files under one address, on this machine or in S3, by name. Knows nothing of what they hold.

A name is relative to the address, with `/` between its segments. LocalFiles and S3Objects keep what Storage promises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from stream_sort.errors import InvalidInput, SettingsError, shown
from stream_sort.ports.in_flight import InFlight
from stream_sort.replay.files.local_files import LocalFiles

if TYPE_CHECKING:
    from stream_sort.replay.files.readable import Readable
    from stream_sort.replay.files.s3_objects import S3Objects

# Requests that are in flight together.
AT_ONCE = InFlight(16)
S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
# A driver letter or a plain path has no scheme of two letters or more.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


@dataclass(frozen=True, slots=True)
class Storage:
    """Files under a local path, `file://` or `s3://bucket/prefix`.

    It goes from process to process: clients are made where it is used. What was written is durable, and every later
    call reads it.
    """

    uri: str
    endpoint_url: str | None = None
    region: str | None = None

    def __post_init__(self) -> None:
        _split(self.uri)

    def read(self, name: str) -> bytes:
        """Read a whole file; FileMissing if there is none."""
        return _place(self).read(_checked(name))

    def write(self, name: str, content: bytes) -> None:
        """Put a file, whole or not at all, in the place of whatever was there."""
        _place(self).write(_checked(name), content)

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Put a file, whole or not at all, if there is none; whether it was put. Of several at once one wins."""
        return _place(self).put_if_absent(_checked(name), content)

    def list(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, at any depth, sorted; none if there is nothing there."""
        return _place(self).list(prefix)

    def some_name(self) -> str | None:
        """Return the name of any file, None if there is none; what a system hides in its folders does not count."""
        return _place(self).some_name()

    def exists(self, name: str) -> bool:
        """Return True if there is such a file."""
        return self.size(name) is not None

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, None if there is none."""
        return _place(self).size(_checked(name))

    def open(self, name: str) -> Readable:
        """Open a file for reading at any place; FileMissing if there is none."""
        return _place(self).open(_checked(name))

    def delete(self, name: str) -> None:
        """Remove a file; none there is no error."""
        _place(self).delete(_checked(name))

    def sweep(self) -> None:
        """Remove what writers that died left behind; for when nobody writes any more."""
        _place(self).sweep()

    @property
    def canonical(self) -> str:
        """The address in one form, whichever way it was written."""
        scheme, bucket, path = _split(self.uri)
        return f"{scheme}://{bucket}/{path}" if scheme else str(Path(path).expanduser().resolve())

    def address(self, name: str) -> str:
        """Return where a file is, for people."""
        return f"{self.uri.rstrip('/')}/{name}"


def _split(uri: Any) -> tuple[str, str, str]:
    """Scheme ("" for a local path), bucket and path of an address."""
    if not isinstance(uri, str) or not uri.strip() or "\0" in uri:
        raise SettingsError(f"address {shown(uri)}: give a local path, file:///path or s3://bucket/prefix")
    found = _SCHEME.match(uri)
    scheme = found[1].lower() if found else ""
    if not scheme:
        return "", "", uri
    if scheme == "file":
        parts = urlsplit(uri)
        if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
            raise SettingsError(f"address {shown(uri)}: a file address has three slashes, file:///path")
        return "", "", unquote(parts.path)
    bucket, _, path = uri[len(scheme) + 1 :].removeprefix("//").partition("/")
    if scheme not in S3_SCHEMES or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{2,62}", bucket):
        raise SettingsError(f"address {shown(uri)}: give a local path, file:///path or s3://bucket/prefix")
    return "s3", bucket, path.strip("/")


# Clients are made once in a process; they are safe to share between threads.
@lru_cache(maxsize=32)
def _place(storage: Storage) -> LocalFiles | S3Objects:
    scheme, bucket, path = _split(storage.uri)
    if not scheme:
        return LocalFiles(path)
    # boto3 is slow to load, and local files do without it.
    from stream_sort.replay.files.s3_objects import S3Objects  # noqa: PLC0415

    return S3Objects(bucket, path, storage.endpoint_url, storage.region)


def _checked(name: str) -> str:
    if not name or "\0" in name or any(part in {"", ".", ".."} for part in name.split("/")):
        raise InvalidInput(f"file name {shown(name)}: it must be relative, with no empty, '.' or '..' segment")
    return name
