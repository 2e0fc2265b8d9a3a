"""For spark-submit, or plain Python: checks that every queue is complete; `--help` says what it takes."""

from __future__ import annotations

import sys

from stream_sort.replay.audit.job import main

if __name__ == "__main__":
    sys.exit(main())
