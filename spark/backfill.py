"""For spark-submit, or plain Python: replays ordered ranges of queues; `--help` says what it takes."""

from __future__ import annotations

import sys

from stream_sort.replay.backfill.job import main

if __name__ == "__main__":
    sys.exit(main())
