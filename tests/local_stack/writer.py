"""One writer process: makes the calls of a work file and tells on stdout when each begins and ends.

    python writer.py CONNECTION_JSON ITEMS_TABLE CURSOR_TABLE WORK_FILE

A work file holds one call a line: `[number, [message, ...]]`; one message is a put, several are a put_many.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

import boto3

from stream_sort import StreamSorter


def tell(**line: Any) -> None:
    """Unbuffered, so that what was said is known when a kill comes."""
    os.write(1, f"{json.dumps(line)}\n".encode())


def statuses(sorter: StreamSorter, messages: list[dict[str, Any]]) -> dict[str, Any]:
    if len(messages) == 1:
        advance = sorter.put(messages[0])
        return {"released": len(advance), advance.status: messages}
    result = sorter.put_many(messages)
    assert not result.rejected, result.rejected
    assert not result.stalled, result.stalled
    assert result.accepted + len(result.duplicates) + len(result.conflicts) == len(messages)
    known = [*result.duplicates, *result.conflicts]
    return {
        "released": result.released,
        "duplicate": result.duplicates,
        "conflict": result.conflicts,
        "accepted": [message for message in messages if message not in known],
    }


def main(connection: str, items_table: str, cursor_table: str, work_file: str) -> None:
    client = boto3.session.Session().client("dynamodb", **json.loads(connection))
    requests = itertools.count()
    client.meta.events.register("before-send.dynamodb.*", lambda **_: next(requests) and None)
    sorter = StreamSorter(items_table=items_table, cursor_table=cursor_table, client=client)
    for line in Path(work_file).read_text().splitlines():
        number, messages = json.loads(line)
        began = next(requests)
        tell(begin=number)
        outcome = statuses(sorter, messages)
        tell(done=number, requests=next(requests) - began - 1, **outcome)


if __name__ == "__main__":
    main(*sys.argv[1:])
