"""The classic algorithm, to compare with: store; if the message is next, move the cursor and read five ahead.

One message at a time; it has no conditions and reads what may be stale, so it is neither safe with several writers
nor after a crash. It lives here only.
"""

from __future__ import annotations

from typing import Any

AHEAD = 5


class ClassicSorter:
    """Sorts by the classic algorithm, on the same tables."""

    def __init__(self, client: Any, items_table: str, cursor_table: str) -> None:
        self._client = client
        self._items = items_table
        self._cursors = cursor_table

    def put(self, message: dict[str, Any]) -> None:
        queue, seq = message["queue"], message["seq"]
        wire = {"queue": {"S": queue}, "seq": {"N": str(seq)}, "body": {"S": message["body"]}}
        self._client.put_item(TableName=self._items, Item=wire)
        if self._position(queue) != seq - 1:
            return
        self._move(queue, seq)
        while run := self._run_after(queue, seq):
            seq = run[-1]
            self._move(queue, seq)
            if len(run) < AHEAD:
                return

    def _position(self, queue: str) -> int:
        row = self._client.get_item(TableName=self._cursors, Key={"queue": {"S": queue}}).get("Item")
        return int(row["seq"]["N"]) if row else -1

    def _move(self, queue: str, seq: int) -> None:
        self._client.put_item(TableName=self._cursors, Item={"queue": {"S": queue}, "seq": {"N": str(seq)}})

    def _run_after(self, queue: str, seq: int) -> list[int]:
        found = self._client.query(
            TableName=self._items,
            KeyConditionExpression="#queue = :queue AND #seq > :seq",
            ExpressionAttributeNames={"#queue": "queue", "#seq": "seq"},
            ExpressionAttributeValues={":queue": {"S": queue}, ":seq": {"N": str(seq)}},
            Limit=AHEAD,
        )["Items"]
        seqs = [int(item["seq"]["N"]) for item in found]
        return [one for place, one in enumerate(seqs, start=1) if one == seq + place]
