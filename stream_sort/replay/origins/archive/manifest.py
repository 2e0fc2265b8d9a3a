"""The manifest of an archive's segment: what the segment holds, and where in it. Pure but for JSON.

It is written after the segment. A reader trusts manifests only: a Parquet file without one is not finished.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from stream_sort.errors import ArchiveDamaged, InvalidInput
from stream_sort.replay.files.json_content import value_of
from stream_sort.replay.files.paths import decode_seq, encode_queue, encode_seq
from stream_sort.replay.ranges import Range, is_stored_number, range_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.ranges import Selection

FORMAT = "stream_sort archive segment"
VERSION = 1
QUEUES = "queues/"
PLANS = "/plans/"
DATA, MANIFEST = ".parquet", ".json"
_SHA256 = re.compile("[0-9a-f]{64}")
LOST = "restore it from a backup or an older version of the object"
SEGMENT_LOST = (
    f"{LOST}; where nothing of its run was trimmed, the segment and its manifest may be deleted instead: archive "
    "writes them again"
)


def deletable(first: int) -> str:
    """Return what else can be done where the table still has all from a seq on."""
    return (
        f"Where nothing from seq {first} on was trimmed, all files of the queue from there on may be deleted instead: "
        "archive writes them again"
    )


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Some rows that are read together: where they begin, and the earliest and latest arrival among them."""

    first_seq: int
    rows: int
    min_arrived_at: int | None
    max_arrived_at: int | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one segment holds: the slots `(after, through]` of a queue. Times are milliseconds since the epoch.

    `size` and `sha256` are those of the Parquet file.
    """

    queue: str
    after: int
    through: int
    rows: int
    tombstones: int
    min_arrived_at: int | None
    max_arrived_at: int | None
    size: int
    sha256: str
    row_groups: tuple[RowGroup, ...]

    @property
    def range(self) -> Range:
        """The slots it holds."""
        return Range(self.queue, self.after, self.through)

    @property
    def data_name(self) -> str:
        """The name of the segment."""
        return segment_name(self.range) + DATA

    @property
    def name(self) -> str:
        """The name of the manifest."""
        return segment_name(self.range) + MANIFEST

    def text(self) -> bytes:
        """Return the manifest as it is stored: the same segment, the same bytes."""
        document = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()

    def timed(self, selection: Selection) -> list[Range]:
        """Return the ranges of its row groups that may hold what arrived when the selection says."""
        return [
            Range(self.queue, group.first_seq - 1, group.first_seq - 1 + group.rows)
            for group in self.row_groups
            if _may_hold(group, selection)
        ]


def folder_of(queue: str) -> str:
    """Return where the segments of a queue are."""
    return f"{QUEUES}{encode_queue(queue)}/"


def segment_name(held: Range) -> str:
    """Return the name of a segment, by its first seq, without what comes after the dot."""
    return folder_of(held.queue) + encode_seq(held.after + 1)


def is_manifest(name: str) -> bool:
    """Return True if a file is called like the manifest of a segment."""
    try:
        first_seq(name)
    except InvalidInput:
        return False
    return name.endswith(MANIFEST) and PLANS not in name


def first_seq(name: str) -> int:
    """Return where a segment begins, as the name of its manifest says."""
    return decode_seq(name.rpartition("/")[2].removesuffix(MANIFEST))


def parse(content: bytes, name: str, address: str) -> Manifest:
    """Return the manifest of a file; ArchiveDamaged for what is none, or does not agree with itself or its name."""
    try:
        document: dict[str, Any] = value_of(content)
        version = (document.pop("format"), document.pop("version"))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ArchiveDamaged(address, f"it is no manifest of a segment ({error}); {SEGMENT_LOST}") from error
    if version != (FORMAT, VERSION):
        raise ArchiveDamaged(address, f"its format is {version[0]!r} version {version[1]!r}, and this reads {VERSION}")
    try:
        groups = tuple(RowGroup(**group) for group in document.pop("row_groups"))
        manifest = Manifest(**document, row_groups=groups)
        sound = _is_sound(manifest) and manifest.name == name
    except (KeyError, TypeError, ValueError) as error:
        raise ArchiveDamaged(address, f"it is no manifest of a segment ({error}); {SEGMENT_LOST}") from error
    if not sound:
        raise ArchiveDamaged(address, f"its name, range, rows and row groups do not agree; {SEGMENT_LOST}")
    return manifest


def stored_manifest(storage: Storage, name: str) -> Manifest:
    """Read a manifest; FileMissing if there is none, and as `parse` for what is none."""
    return parse(storage.read(name), name, storage.address(name))


def check_sequence(manifests: Sequence[Manifest], address: str) -> None:
    """Raise ArchiveDamaged unless the segments of one queue, sorted, follow each other without overlap or gap."""
    for before, after in pairwise(manifests):
        where = f"{address.rstrip('/')}/{after.name}"
        if after.after < before.through:
            raise ArchiveDamaged(
                where,
                f"it begins at seq {after.after + 1}, and {before.name} goes on to {before.through}: they overlap; "
                "two archives were mixed, so keep the files of one of them; or a plan was lost and made anew, so keep "
                "the segments that the plans tell of",
            )
        if after.after > before.through:
            raise ArchiveDamaged(
                where,
                f"it begins at seq {after.after + 1}, and {before.name} ends at {before.through}: a segment between "
                f"them is missing; {LOST}",
            )


def check_end(manifest: Manifest, through: int | None, address: str) -> None:
    """Raise ArchiveDamaged unless a segment ends where the mark of its plan says; None: its mark does not tell."""
    if through is not None and manifest.through != through:
        raise ArchiveDamaged(
            f"{address.rstrip('/')}/{manifest.name}",
            f"it ends at seq {manifest.through}, and the mark of its plan says {through}: it is another segment; "
            f"{SEGMENT_LOST}",
        )


def _is_sound(manifest: Manifest) -> bool:
    """Return True if row groups fill the range, one after the other."""
    range_of(manifest.queue, manifest.after, manifest.through)
    counts = manifest.rows, manifest.tombstones, manifest.size
    if not all(map(is_stored_number, counts)) or not _are_times(manifest) or not _SHA256.fullmatch(manifest.sha256):
        return False
    at = manifest.after + 1
    for group in manifest.row_groups:
        if group.first_seq != at or not is_stored_number(group.rows) or group.rows < 1 or not _are_times(group):
            return False
        at += group.rows
    return at == manifest.through + 1 and manifest.rows == len(manifest.range) > 0


def _are_times(held: Manifest | RowGroup) -> bool:
    return all(time is None or is_stored_number(time) for time in (held.min_arrived_at, held.max_arrived_at))


def _may_hold(group: RowGroup, selection: Selection) -> bool:
    if group.min_arrived_at is None or group.max_arrived_at is None:
        return not selection.by_time
    late_enough = selection.since is None or group.max_arrived_at >= selection.since * 1000
    return late_enough and (selection.until is None or group.min_arrived_at < selection.until * 1000)
