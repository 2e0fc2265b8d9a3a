"""The manifests of a point-in-time export: what files it has, how many items and which checksum each.

Everything that can be known without opening a data file is checked here; `export_files` reads those.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.errors import ExportDamaged, FileMissing, shown
from stream_sort.replay.files.json_content import value_of
from stream_sort.replay.files.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterable

SUMMARY = "manifest-summary.json"
FILES = "manifest-files.json"
HOME = "AWSDynamoDB/"
JSON_FORMAT = "DYNAMODB_JSON"
FULL_EXPORT = "FULL_EXPORT"
AGAIN = "copy the export again, whole, or make a new one"
# Of a key only what follows the export's own folder is sure: whether the prefix stands before it differs.
_WITHIN = re.compile(r"(?:^|/)AWSDynamoDB/[^/]+/(.+)$")
_PLAIN_ETAG = re.compile(r'"?([0-9a-f]{32})"?')
_MD5_BYTES = 16


@dataclass(frozen=True, slots=True)
class DataFile:
    """One gzip file of an export; `md5` is that of the file as it lies there, None where no manifest tells it."""

    name: str
    items: int
    md5: bytes | None


@dataclass(frozen=True, slots=True)
class Export:
    """A checked export: its data files are all there, longest first."""

    storage: Storage
    files: tuple[DataFile, ...]
    items: int
    table: str = ""
    time: str = ""

    def address(self, file: DataFile) -> str:
        """Return where a file is, for people."""
        return self.storage.address(file.name)


def open_export(location: Storage) -> Export:
    """Return the export at a location: its own folder, its summary, or a bucket with one export in it.

    Raises ExportDamaged, naming the file, for whatever is missing, doubled or contradicts itself.
    """
    storage = _folder(location)
    summary = _document(storage, SUMMARY)
    _check_kind(storage, summary)
    files = sorted(_files(storage), key=lambda file: (-file.items, file.name))
    items, told = sum(file.items for file in files), summary.get("itemCount")
    if told is not None and told != items:
        raise ExportDamaged(
            storage.address(FILES), f"its files have {items:,} items, but {SUMMARY} says {shown(told)}; {AGAIN}"
        )
    table, time = str(summary.get("tableArn", "")), str(summary.get("exportTime", ""))
    return Export(storage, tuple(files), items, table.rpartition("/")[2], time)


def _folder(location: Storage) -> Storage:
    uri = location.uri.rstrip("/")
    if uri.endswith(f"/{SUMMARY}") or uri == SUMMARY:
        return _at(location, uri[: -len(SUMMARY)].rstrip("/") or ".")
    if location.exists(SUMMARY):
        return location
    # Not a list of the whole bucket: it may hold anything.
    found = [name for name in location.list(HOME) if name.endswith(f"/{SUMMARY}")]
    if len(found) == 1:
        return _at(location, location.address(found[0][: -len(SUMMARY) - 1]))
    if found:
        names = ", ".join(found[:5])
        raise ExportDamaged(location.uri, f"{len(found)} exports are there; name the folder of one of them: {names}")
    raise ExportDamaged(
        location.address(SUMMARY),
        "not there; give the folder of a finished export, which ends with AWSDynamoDB/<export id>",
    )


def _at(location: Storage, uri: str) -> Storage:
    return Storage(uri, location.endpoint_url, location.region)


def _check_kind(storage: Storage, summary: dict[str, Any]) -> None:
    where = storage.address(SUMMARY)
    form = summary.get("outputFormat", JSON_FORMAT)
    if form != JSON_FORMAT:
        raise ExportDamaged(where, f"the format is {shown(form)}; export the table again as {JSON_FORMAT}")
    kind = summary.get("exportType") or FULL_EXPORT
    if kind != FULL_EXPORT:
        raise ExportDamaged(
            where, f"the kind is {shown(kind)}, which holds changes only; export the table again as {FULL_EXPORT}"
        )


def _files(storage: Storage) -> list[DataFile]:
    rows = [_file(storage, number, row) for number, row in _rows(storage)]
    present = set(storage.list())
    resolved = [DataFile(_resolve(storage, row.name, present), row.items, row.md5) for row in rows]
    for name, count in Counter(file.name for file in resolved).items():
        if count > 1:
            raise ExportDamaged(storage.address(FILES), f"lists {name} {count} times; {AGAIN}")
    return resolved


def _rows(storage: Storage) -> Iterable[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(_text(storage, FILES).splitlines(), 1):
        if line.strip():
            yield number, _parsed(line, f"{storage.address(FILES)}, line {number}")


def _file(storage: Storage, number: int, row: dict[str, Any]) -> DataFile:
    where = f"{storage.address(FILES)}, line {number}"
    key, items = row.get("dataFileS3Key"), row.get("itemCount")
    if not isinstance(key, str) or not key or isinstance(items, bool) or not isinstance(items, int) or items < 0:
        raise ExportDamaged(where, f"has no dataFileS3Key and itemCount: {shown(row, 200)}; {AGAIN}")
    return DataFile(key, items, _md5(where, row))


def _md5(where: str, row: dict[str, Any]) -> bytes | None:
    """Return the checksum of a file; an etag is one, too, but only of files that were stored whole and in the clear."""
    told = row.get("md5Checksum")
    if told is None:
        plain = _PLAIN_ETAG.fullmatch(str(row.get("etag", "")))
        return bytes.fromhex(plain[1]) if plain else None
    try:
        md5 = base64.b64decode(told, validate=True)
    except (TypeError, ValueError, binascii.Error):
        md5 = b""
    if len(md5) != _MD5_BYTES:
        raise ExportDamaged(where, f"md5Checksum {shown(told)} is no checksum; {AGAIN}")
    return md5


def _resolve(storage: Storage, key: str, present: set[str]) -> str:
    within = _WITHIN.search(key)
    candidates = [within[1]] if within else []
    candidates += [key, f"data/{key.rpartition('/')[2]}"]
    for name in candidates:
        if name in present:
            return name
    raise ExportDamaged(
        storage.address(candidates[0]), f"not there, though {FILES} lists it as {shown(key, 200)}; {AGAIN}"
    )


def _document(storage: Storage, name: str) -> dict[str, Any]:
    return _parsed(_text(storage, name), storage.address(name))


def _text(storage: Storage, name: str) -> str:
    where = storage.address(name)
    try:
        content = storage.read(name)
    except FileMissing as error:
        raise ExportDamaged(where, f"not there; {AGAIN}") from error
    _check_own_md5(storage, name, content)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ExportDamaged(where, f"is no text: {error}; {AGAIN}") from error


def _check_own_md5(storage: Storage, name: str, content: bytes) -> None:
    """Check a manifest by its own checksum beside it; copies often come without."""
    beside = name.replace(".json", ".md5")
    if not storage.exists(beside):
        return
    told = storage.read(beside).decode(errors="replace").strip()
    md5 = base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
    if told != md5:
        raise ExportDamaged(storage.address(name), f"its md5 is {md5}, but {beside} says {shown(told)}; {AGAIN}")


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        value = value_of(text)
    except ValueError as error:
        raise ExportDamaged(where, f"is no JSON: {error}; {AGAIN}") from error
    if not isinstance(value, dict):
        raise ExportDamaged(where, f"is no JSON object: {shown(value)}; {AGAIN}")
    return value
