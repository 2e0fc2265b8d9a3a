"""The tables as a stream: offsets are positions, micro-batches are ordered ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from stream_sort.errors import CursorLost, SettingsError
from stream_sort.replay.ranges import Range
from stream_sort.replay.selection import clipped
from stream_sort.replay.source.positions import packed, shared_out, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit

    from stream_sort.replay.access import TableAccess
    from stream_sort.replay.source.reading import Reading


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
        """Where a query without a checkpoint starts."""
        return packed(self._positions() if self._reading.options.starting_position == "latest" else {})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's interface
        """The option maxRowsPerBatch."""
        most = self._reading.options.max_rows_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's interface
        """Go as far as the positions are now, and no further."""
        self._target = self._positions()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  # Spark's interface
        """The positions as they are, or as far towards them as the limit lets one micro-batch go."""
        before = unpacked(start)
        now = self._positions() if self._target is None else self._target
        due = self._due(before, {**before, **now})
        if isinstance(limit, ReadMaxRows) and sum(map(len, due)) > limit.max_rows:
            shares = shared_out({one.queue: len(one) for one in due}, limit.max_rows)
            due = [replace(one, through=one.after + shares.get(one.queue, 0)) for one in due]
        moved = [one for one in due if len(one)]
        if not moved:
            # The very same, with its beginnings: Spark sees by the text whether there is anything new.
            return start
        # Where a queue begins may change with a trim: what a micro-batch reads is settled here, not when it is read.
        begins = {one.queue: one.after for one in moved if one.queue not in before}
        return packed({**before, **{one.queue: one.through for one in moved}}, begins)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """What lies between two offsets, in ranges of about equal length; Trimmed is raised by who reads them."""
        begins = unpacked(end, "begins")
        due = clipped(self._reading.options.selection, self._due({**begins, **unpacked(start)}, unpacked(end)))
        return [InputPartition(part) for part in self._reading.parts(due)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition, in order."""
        return self._reading.rows(partition.value)

    @property
    def _access(self) -> TableAccess:
        access = self._reading.options.access
        if access is None:
            raise SettingsError("itemsTable and cursorTable are missing")
        return access

    def _positions(self) -> dict[str, int]:
        return {cursor.queue: cursor.position for cursor in self._access.cursors(self._reading.options.selection)}

    def _due(self, before: dict[str, int], after: dict[str, int]) -> list[Range]:
        """The ranges between; a queue that is new begins before its first seq, as its cursor row says."""
        new = tuple(queue for queue in after if queue not in before)
        begins = self._beginnings(new) if new else {}
        due = []
        for queue, position in sorted(after.items()):
            start = before.get(queue, begins.get(queue, position))
            if position < start:
                raise CursorLost(queue, known_position=start)
            due.append(Range(queue, start, position))
        return due

    def _beginnings(self, queues: tuple[str, ...]) -> dict[str, int]:
        wanted = replace(self._reading.options.selection, queues=queues, only=None)
        return {cursor.queue: cursor.start for cursor in self._access.cursors(wanted)}
