"""What a message costs is regressed like a bug: counted requests and units, so the same on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.workloads import WORKLOADS, Bench, Workload, figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.local.ministack import MiniStack

COUNTS = {1: 150, 100: 600, 500: 1_500}


@pytest.fixture(scope="module")
def bench(ministack: MiniStack) -> Iterator[Bench]:
    bench = Bench(ministack)
    yield bench
    bench.close()


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_message_costs_no_more_than_its_bars(bench: Bench, workload: Workload) -> None:
    count = COUNTS[workload.batch]
    usage = bench.cost(workload, count)
    measured = figures(usage, count)
    over = {name: measured[name] for name, bar in workload.bars.items() if measured[name] > bar}
    assert not over, f"bars {workload.bars}; requests of a message: {usage.a_message(count)}"


def test_the_classic_algorithm_costs_what_is_known_of_it(bench: Bench) -> None:
    in_order, shuffled = WORKLOADS[:2]
    assert figures(bench.classic_cost(in_order, 100), 100) == pytest.approx(
        {"requests": 4.0, "write units": 2.0, "read units": 1.0}, rel=0.02
    )
    assert figures(bench.classic_cost(shuffled, 300), 300) == pytest.approx(
        {"requests": 2.94, "write units": 1.56, "read units": 0.7}, rel=0.05
    )
