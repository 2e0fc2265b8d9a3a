"""The options of an archive run: tables, archive, size of segments; as values, and as a command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stream_sort.errors import SettingsError
from stream_sort.replay.archive.due import Ledgers
from stream_sort.replay.engine.options import JobParser, add_place, add_running, missing_table, positive
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.selection import Selection

if TYPE_CHECKING:
    import argparse

SEGMENT_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """An archive run. A queue with less than `min_rows` to archive waits for a later one."""

    access: TableAccess
    control_table: str
    storage: Storage
    queues: tuple[str, ...] | None = None
    segment_rows: int = SEGMENT_ROWS
    min_rows: int = 1
    rows_per_part: int = SEGMENT_ROWS
    trim: bool = False
    max_read_units: float | None = None
    consistent: bool = True
    quiet: bool = True
    selection: Selection = field(init=False)

    def __post_init__(self) -> None:
        if not self.control_table:
            raise SettingsError("--control-table is missing; it says what is consumed, and keeps what is archived")
        if self.segment_rows < 1 or self.min_rows < 1:
            raise SettingsError("a segment has at least 1 row: see --segment-rows and --min-rows")
        object.__setattr__(self, "selection", Selection(queues=self.queues))

    def ledgers(self) -> Ledgers:
        """Return where it stands how far queues are consumed and archived."""
        marks = self.access.archive_marks(self.control_table, self.storage.canonical)
        stores = self.access.sorter.stores
        return Ledgers(stores.control(self.control_table), marks, self.storage, stores.cursors)


def archive_parser() -> JobParser:
    """Return the command line of an archive run."""
    parser = JobParser(
        "archive",
        "Write what is released and everywhere consumed to ordered Parquet segments.",
        "stream-sort archive --stack orders --archive archived --dry-run",
    )
    add_place(parser, "tables")
    job = parser.add_argument_group("archive")
    job.add_argument("--archive", required=True, metavar="URI", help="the archive: a folder or s3://bucket/prefix")
    job.add_argument("--queue", action="append", metavar="NAME", help="only this queue; may be given often")
    job.add_argument(
        "--segment-rows", type=positive, default=SEGMENT_ROWS, metavar="N", help="rows of one file (%(default)s)"
    )
    job.add_argument(
        "--min-rows", type=positive, default=1, metavar="N", help="leave queues with less to archive for later"
    )
    job.add_argument(
        "--trim", action="store_true", help="then compare what is archived with the items table, and delete it there"
    )
    job.add_argument("--yes", "-y", action="store_true", help="trim without asking; a script never asks")
    job.add_argument("--dry-run", action="store_true", help="print the plan and its cost, write nothing")
    add_running(parser, SEGMENT_ROWS)
    return parser


def options_of(given: argparse.Namespace) -> ArchiveOptions:
    """Return the archive run that a command line asks for."""
    for name in ("items_table", "cursor_table", "control_table"):
        if not getattr(given, name):
            raise missing_table(name)
    keys = given.queue_key or "queue", given.seq_key or "seq"
    return ArchiveOptions(
        access=TableAccess(given.items_table, given.cursor_table, *keys, given.region, given.endpoint_url),
        control_table=given.control_table,
        storage=Storage(given.archive, endpoint_url=given.endpoint_url, region=given.region),
        queues=tuple(given.queue) if given.queue else None,
        segment_rows=given.segment_rows,
        min_rows=given.min_rows,
        rows_per_part=given.rows_per_part,
        trim=given.trim,
        max_read_units=given.max_read_units,
        consistent=not given.eventual,
        quiet=given.quiet,
    )
