"""The tables as a stream: offsets are positions, micro-batches are ordered ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from stream_sort.errors import CursorLost, SettingsError, Trimmed
from stream_sort.replay.ranges import Range, clipped
from stream_sort.replay.source.positions import is_initial, packed, shared_out, turn_of, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit

    from stream_sort.model.records import Cursor
    from stream_sort.replay.origins.access import TableAccess
    from stream_sort.replay.source.format import Reading


class PositionStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the positions of all queues; a queue that is not in an offset yet begins at its first seq, or its floor.

    Spark's checkpoint decides what was done: a restart goes on where the last micro-batch ended.
    """

    def __init__(self, reading: Reading) -> None:
        if reading.options.access is None:
            raise SettingsError("an archive cannot be read as a stream; use spark.read")
        if not reading.options.selection.released:
            raise SettingsError("a stream reads what is released; leave out released=false")
        self._reading = reading
        self._target: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's interface
        """Return where a query without a checkpoint starts; Spark asks again when it reads its first micro-batch."""
        if self._reading.options.starting_position != "latest":
            return packed({})
        return packed(_positions(self._rows()), is_initial=True)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's interface
        """Return the option maxRowsPerBatch."""
        most = self._reading.options.max_rows_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's interface
        """Go as far as the positions are now, and no further."""
        self._target = _positions(self._rows())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  # Spark's interface
        """Return the positions as they are, or as far towards them as the limit lets one micro-batch go."""
        before, rows = unpacked(start), self._rows()
        self._check_kept(before, rows)
        known = {queue: seq for queue, seq in before.items() if queue not in rows or _has_begun(rows[queue])}
        due, turn = _limited(self._due(known, rows), limit, turn_of(start))
        if not due and known == before:
            # The very same, with its beginnings: Spark sees by the text whether there is anything new.
            return start
        # Where a queue begins may change with a trim, and all of an initial offset with time: what a micro-batch reads
        # is settled here, not when it is read.
        told = {} if is_initial(start) else before
        begins = {one.queue: one.after for one in due if told.get(one.queue) != one.after}
        return packed({**known, **{one.queue: one.through for one in due}}, begins, turn=turn)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return what lies between two offsets, in ranges of about equal length; who reads them raises Trimmed."""
        if start == end:
            return []
        after, begins = unpacked(end), unpacked(end, "begins")
        before = {**unpacked(start), **begins}
        if not begins and not is_initial(end):
            # An offset of an older version does not tell where its new queues begin.
            before |= self._beginnings({queue: seq for queue, seq in after.items() if queue not in before})
        due = [Range(queue, before.get(queue, position), position) for queue, position in after.items()]
        return [InputPartition(part) for part in self._reading.parts(clipped(self._reading.options.selection, due))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of one partition, in order."""
        return self._reading.rows(partition.value)

    @property
    def _access(self) -> TableAccess:
        access = self._reading.options.access
        if access is None:
            raise SettingsError("itemsTable and cursorTable are missing")
        return access

    def _rows(self) -> dict[str, Cursor]:
        # A queue whose row cannot be read is behind until it is mended, and holds up no other.
        return {cursor.queue: cursor for cursor in self._access.cursors(self._reading.options.selection, {})}

    def _rows_of(self, queues: tuple[str, ...]) -> Iterator[Cursor]:
        """Return the rows of these queues, surely as they are now."""
        wanted = replace(self._reading.options.selection, queues=queues, only=None)
        return self._access.cursors(wanted)

    def _check_kept(self, before: dict[str, int], rows: dict[str, Cursor]) -> None:
        """Raise CursorLost for a queue whose position went back; a listing of all may be some moments behind."""
        behind = tuple(queue for queue, row in rows.items() if row.position < before.get(queue, row.position))
        for row in self._rows_of(behind) if behind else ():
            if row.position < before[row.queue]:
                raise CursorLost(row.queue, known_position=before[row.queue])

    def _due(self, before: dict[str, int], rows: dict[str, Cursor]) -> list[Range]:
        """Return what is released and not read yet; a new queue begins before its first seq, as its row says."""
        due = []
        for queue, through in sorted((_positions(rows) if self._target is None else self._target).items()):
            row = rows.get(queue)
            if row is not None:
                # An older version noted queues that had not begun, which could still be opened at a higher seq.
                start = max(before[queue], row.first_seq - 1) if queue in before else row.start
                due.append(Range(queue, start, through))
        return [one for one in due if len(one)]

    def _beginnings(self, after: dict[str, int]) -> dict[str, int]:
        """Return where queues begin that are to be read up to there, as far as their rows still tell."""
        begins = {}
        for row in self._rows_of(tuple(after)) if after else ():
            if row.floor is not None and row.floor > after[row.queue]:
                raise Trimmed(row.queue, row.floor)
            begins[row.queue] = row.start
        return begins


def _has_begun(row: Cursor) -> bool:
    """Return False for a queue that may yet be opened elsewhere: until then it has no position to go on from."""
    return row.position >= row.first_seq


def _positions(rows: dict[str, Cursor]) -> dict[str, int]:
    return {queue: row.position for queue, row in rows.items() if _has_begun(row)}


def _limited(due: list[Range], limit: ReadLimit, turn: str | None) -> tuple[list[Range], str | None]:
    """Return what a micro-batch may hold of it; and the queue that was the last to get its turn, if some get none."""
    if not isinstance(limit, ReadMaxRows) or sum(map(len, due)) <= limit.max_rows:
        return due, None
    shares = shared_out({one.queue: len(one) for one in due}, limit.max_rows, turn)
    part = [replace(one, through=one.after + shares[one.queue]) for one in due if one.queue in shares]
    return part, None if len(part) == len(due) else list(shares)[-1]
