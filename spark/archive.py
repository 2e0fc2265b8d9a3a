"""Archive what is released and everywhere consumed; for spark-submit. See `--help`."""

from __future__ import annotations

import sys

from stream_sort.replay.archive.job import main

if __name__ == "__main__":
    sys.exit(main())
