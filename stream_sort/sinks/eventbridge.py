"""To an EventBridge bus: source `stream_sort`, detail type `message`, detail = the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.aws.clients import UnreadableAnswer, answered
from stream_sort.sinks.progress import SinkEntry, SinkProgress, check_size, cut, entries, refused

if TYPE_CHECKING:
    from stream_sort.model.batch import Batch

SOURCE = "stream_sort"
DETAIL_TYPE = "message"
LABELS_SIZE = len(SOURCE) + len(DETAIL_TYPE)
MAX_COUNT = 10
# What EventBridge can take; some regions may still hold to 256 KiB, so more than one message go up to that.
MAX_BYTES = 1_000_000
MAX_BYTES_TOGETHER = 262_144 - MAX_COUNT * LABELS_SIZE


class EventBridgeSink:
    """Puts the messages in order, ten a call. **EventBridge itself keeps no order** on the way to its targets.

    Whoever needs the order behind it has the queue and the seq in each detail, or takes another sink. For the same
    reason ten go in one call: where an event fails, the ones behind it may have been taken; they come again.
    """

    def __init__(self, target: str, client: Any) -> None:
        self._bus = target
        self._client = client

    def __call__(self, batch: Batch) -> None:
        """Put the batch, or raise with the last seq that was taken with all before it."""
        with SinkProgress(batch, f"EventBridge bus {self._bus}") as progress:
            for piece in cut(entries(batch), MAX_BYTES_TOGETHER, MAX_COUNT):
                self._put(piece, progress)

    def _put(self, piece: list[SinkEntry], progress: SinkProgress) -> None:
        check_size(max(entry.size for entry in piece) + LABELS_SIZE, MAX_BYTES)
        answer = answered(self._client.put_events, "Entries", Entries=[self._event(entry) for entry in piece])
        results = answer["Entries"]
        if len(results) != len(piece):
            raise UnreadableAnswer(problem=f"it has {len(results)} Entries for {len(piece)} events")
        for entry, result in zip(piece, results, strict=True):
            if "EventId" not in result:
                code = result.get("ErrorCode")
                raise refused(code, f"PutEvents failed: {code}: {result.get('ErrorMessage')}")
            progress.last_done = entry.seq

    def _event(self, entry: SinkEntry) -> dict[str, str]:
        return {"EventBusName": self._bus, "Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": entry.text}
