"""How long the functions take to import, against a handler that imports boto3 and makes a client, in one run.

    python -m tests.benchmarks.cold_start

Fresh interpreters in turn, with bytecode and a clean environment. Seconds are of CPU, because others may use this
machine as well, and imports wait for nothing. The figures are medians, the ratios medians of the
ratios within each round. Prints one table; exits with 1 if a bar is missed.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROUNDS = 11
BASELINE = "import boto3; boto3.client('dynamodb', region_name='eu-west-1')"
TIMED = "import time; began = time.process_time(); {}; print(time.process_time() - began)"
LOADED = "{}; import json, sys; print(json.dumps(sorted(sys.modules)))"
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "AWS_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "y",
    "STREAM_SORT_ITEMS_TABLE": "Items",
    "STREAM_SORT_CURSOR_TABLE": "Cursor",
    "STREAM_SORT_CONTROL_TABLE": "Control",
}


@dataclass(frozen=True, slots=True)
class Handler:
    """A function, and how many times as long as the baseline it may take."""

    step: str
    bar: float

    @property
    def code(self) -> str:
        """What Lambda does: the function's folder on the path, its module imported."""
        folder = str(ROOT / "functions" / self.step)
        return f"import sys; sys.path.insert(0, {folder!r}); import app; app.handler"


HANDLERS = [Handler("enqueue", 1.35), Handler("advance", 1.35), Handler("process", 1.7)]


def modules_of(handler: Handler) -> set[str]:
    """The modules that importing a function loads."""
    return set(json.loads(_run(LOADED.format(handler.code))))


def measure(rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Seconds of each, round by round; a round before them, which writes the bytecode, does not count."""
    codes = {"baseline": BASELINE} | {handler.step: handler.code for handler in HANDLERS}
    seconds: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(rounds + 1):
        for name, code in codes.items():
            seconds[name].append(float(_run(TIMED.format(code))))
    return {name: measured[1:] for name, measured in seconds.items()}


def _run(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT).stdout


def main() -> int:
    seconds = measure()
    bare = seconds["baseline"]
    print(f"{'boto3 and a client':<20} {statistics.median(bare) * 1000:6.0f} ms")
    over = 0
    for handler in HANDLERS:
        ours = seconds[handler.step]
        ratio = statistics.median(own / base for own, base in zip(ours, bare, strict=True))
        good = ratio <= handler.bar
        over += not good
        took = f"{statistics.median(ours) * 1000:6.0f} ms  {ratio:.2f}x  <= {handler.bar:g}"
        print(f"{handler.step:<20} {took}  {'ok' if good else 'OVER'}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
