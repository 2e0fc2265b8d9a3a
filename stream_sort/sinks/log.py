"""To standard output, one JSON line a batch: for trying things out. Payload only where the log level is DEBUG."""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING

from stream_sort.formats.json_text import dumps

if TYPE_CHECKING:
    from stream_sort.model.batch import Batch

logger = logging.getLogger(__name__)


class LogSink:
    """Writes what came, not what was in it; each message on a line of its own when this module's logger is at DEBUG."""

    def __call__(self, batch: Batch) -> None:
        """Write the batch's line."""
        line = {"queue": batch.queue, "after": batch.after, "through": batch.through, "count": len(batch)}
        lines = [json.dumps({"sink": "log"} | line)]
        if logger.isEnabledFor(logging.DEBUG):
            queue = json.dumps(batch.queue)
            lines += [
                f'{{"queue":{queue},"seq":{seq},"message":{dumps(message)}}}'
                for seq, message in zip(batch.seqs, batch.messages, strict=True)
            ]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
