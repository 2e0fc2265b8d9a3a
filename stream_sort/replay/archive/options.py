"""The options of an archive run as values: tables, archive, size of segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stream_sort.errors import SettingsError
from stream_sort.replay.archive.due import DueReader
from stream_sort.replay.engine.options import SEGMENT_ROWS, TABLES
from stream_sort.replay.engine.source import missing_table
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.ranges import Selection

if TYPE_CHECKING:
    import argparse


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

    @classmethod
    def of(cls, given: argparse.Namespace) -> ArchiveOptions:
        """Return the archive run that a command line asks for."""
        for name in TABLES:
            if not getattr(given, name):
                raise missing_table(name)
        keys = given.queue_key or "queue", given.seq_key or "seq"
        return cls(
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

    def due_reader(self) -> DueReader:
        """Return where it stands how far queues are consumed and archived."""
        marks = self.access.archive_marks(self.control_table, self.storage.canonical)
        home = self.access.homes.only
        return DueReader(home.control(self.control_table), marks, self.storage, home.cursors)
