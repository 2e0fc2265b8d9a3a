"""What a message costs and how fast it goes, against the classic algorithm, in one run on a local AWS.

    python -m tests.benchmarks.sorter

Prints one table; exits with 1 if a bar is missed.
"""

from __future__ import annotations

import operator
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.local.ministack import MiniStack
from tests.benchmarks.speed import import_seconds, measure_speeds
from tests.benchmarks.workloads import WORKLOADS, Bench, figures

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTS = {1: 300, 100: 1_000, 500: 2_500}
CLASSIC_COUNT = 300
HEADS = ("", "stream_sort", "compared", "ratio", "bar", "")
HOLDS = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; the bar, if there is one, is for `held_to`."""

    name: str
    ours: str
    theirs: str
    ratio: float
    held_to: float = 0.0
    sign: str = ""
    bar: float = 0.0

    @property
    def good(self) -> bool:
        return not self.sign or HOLDS[self.sign](round(self.held_to, 4), self.bar)

    def cells(self) -> tuple[str, ...]:
        bar = f"{self.sign} {self.bar:g}" if self.sign else "-"
        return self.name, self.ours, self.theirs, f"{self.ratio:.2f}x", bar, "ok" if self.good else "OVER"


def cost_rows(bench: Bench) -> Iterator[Row]:
    for workload in WORKLOADS:
        count = COUNTS[workload.batch]
        usage = bench.cost(workload, count)
        ours = figures(usage, count)
        theirs = figures(bench.classic_cost(workload, CLASSIC_COUNT), CLASSIC_COUNT)
        for name, figure in ours.items():
            bar = workload.bars.get(name)
            row = Row(
                f"{workload.name}: {name} a message",
                f"{figure:.3f}",
                f"{theirs[name]:.2f} classic",
                figure / theirs[name],
                held_to=figure,
                sign="" if bar is None else "<=",
                bar=bar or 0.0,
            )
            if not row.good:
                tell(f"over the bar: {row.name}; requests of a message: {usage.a_message(count)}")
            yield row


def speed_rows(bench: Bench) -> Iterator[Row]:
    speeds = measure_speeds(bench)
    ours = f"{speeds.sorter:,.0f}/s"
    ratio = speeds.against_classic
    yield Row("messages a second, batches of 500", ours, f"{speeds.classic:,.0f}/s classic", ratio, ratio, ">=", 8)
    ratio, bare = speeds.against_bare, f"{speeds.bare:,.0f}/s bare"
    yield Row("the time of batches, their store calls alone = 1", ours, bare, ratio, ratio, "<=", 1.4)


def import_row() -> Row:
    ours, theirs = import_seconds("stream_sort"), import_seconds("boto3")
    return Row("import stream_sort", f"{ours * 1000:.1f} ms", f"{theirs * 1000:.0f} ms boto3", ours / theirs)


def show(rows: list[Row]) -> None:
    table = [HEADS, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        name, *rest = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print("  ".join([name, *(cell.strip().rjust(len(cell)) for cell in rest)]).rstrip())


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    with MiniStack(report=tell) as stack:
        bench = Bench(stack)
        try:
            tell("counting requests and units")
            rows = list(cost_rows(bench))
            tell("measuring speed, in rounds")
            rows += speed_rows(bench)
        finally:
            bench.close()
    rows.append(import_row())
    show(rows)
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
