"""Every interleaving of three writers and three messages, with one crash and one repeated request anywhere."""

import multiprocessing

import pytest

from stream_sort.testing.simulation.failure import SimulationFailure
from stream_sort.testing.simulation.operations import Operation
from tests.simulation.mutants import MUTANTS
from tests.simulation.search.cases import CASES, QUEUE, Case, put, put_many
from tests.simulation.search.exhaustive import Search, SearchResult


def search(index: int) -> SearchResult | SimulationFailure:
    try:
        return Search(CASES[index]).run()
    except SimulationFailure as failure:
        return failure


@pytest.fixture(scope="module")
def found() -> dict[str, SearchResult | SimulationFailure]:
    largest_first = range(len(CASES) - 1, -1, -1)
    with multiprocessing.get_context("spawn").Pool() as pool:
        results = pool.map(search, largest_first, 1)
    return {CASES[index].name: result for index, result in zip(largest_first, results, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_i1_i2_i5_and_i6_hold_in_every_interleaving(
    found: dict[str, SearchResult | SimulationFailure], case: Case
) -> None:
    result = found[case.name]
    if isinstance(result, SimulationFailure):
        raise result
    assert result.executions > result.states > 1_000


def test_executions_are_counted_as_ways_to_interleave_the_calls() -> None:
    alone = Search(Case("alone", (put(0),), crashes=0, repeats=0)).run()
    assert (alone.executions, alone.states) == (1, 7)
    crashes = Search(Case("alone", (put(0),), repeats=0)).run()
    assert crashes.executions == 1 + 2 * 3, "before and after each of the three writes"


def test_a_failure_shows_the_interleaving_that_leads_to_it() -> None:
    batch = Case("batch", (put_many(0, 2), put(1)))
    with pytest.raises(SimulationFailure) as caught:
        Search(batch, MUTANTS["no-read-after-update"]).run()
    failure = caught.value
    assert failure.number == "I2"
    assert any("writer1  items.put" in line for line in failure.lines)
    assert failure.command == "python -m tests.simulation exhaustive --mutant no-read-after-update"


def test_a_message_that_is_refused_is_judged_as_any_other() -> None:
    opened = Case("opened", (Operation("open", QUEUE, argument=2), put(0)), crashes=0, repeats=0)
    assert Search(opened).run().executions > 1
