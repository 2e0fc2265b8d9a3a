"""What `stream-sort --help` costs beside the library that it is made with: heavy imports only where used."""

from __future__ import annotations

import subprocess
import sys
import time

RUNS = 10


def spent(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return time.perf_counter() - began


def test_help_costs_little_more_than_typer_itself() -> None:
    # In turns, so that both have the same machine.
    both = [(spent("import typer"), spent("from stream_sort.cli.app import app; app(['--help'])")) for _ in range(RUNS)]
    plain, shown = map(min, zip(*both, strict=True))
    print(f"stream-sort --help: {shown / plain:.2f} times `import typer` ({plain * 1000:.0f} ms)")
    assert shown <= 1.5 * plain
