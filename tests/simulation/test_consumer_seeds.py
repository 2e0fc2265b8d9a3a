"""I3, I4, I7, I8 and I10 hold for consumers: kills, zombies, deadly messages, repeats, a day of stream lost."""

from collections.abc import Iterator

import pytest

from stream_sort import Batch
from stream_sort.testing import SimulationFailure, simulate
from stream_sort.testing.__main__ import main
from stream_sort.testing.simulation.simulator import simulate_consumers
from stream_sort.testing.simulation.soak import Soaked, soak
from tests.simulation.__main__ import main as search_main
from tests.simulation.hunt import hunt_by_seeds
from tests.simulation.mutants import MUTANTS

SEEDS = 2_000


@pytest.fixture(scope="module")
def soaked() -> Soaked:
    return soak(0, SEEDS, run=simulate_consumers)


def test_every_invariant_holds_for_consumers_in_2000_seeds(soaked: Soaked) -> None:
    if soaked.failure:
        raise soaked.failure
    assert soaked.seeds == SEEDS


@pytest.mark.parametrize(
    ("what", "at_least"),
    [
        ("batches", 5_000),
        ("handler failures", 1_000),
        ("functions killed", 1_000),
        ("zombies", 1_000),
        ("records dropped", 500),
        ("records lost", 300),
        ("partial failures", 5),
        ("redrive", 300),
        ("discard", 100),
        ("catch_up", 300),
        ("dead letters", 100),
        ("parked", 500),
        ("effects", 1_000),
        ("cursors lost", 50),
        ("deaths", 500),
        ("precautions", 400),
        ("outages waited for", 300),
        ("deadly ones set aside", 25),
        ("deadly ones parked for good", 25),
        ("retired", 200),
        ("introduce", 200),
        ("trim", 1_000),
        ("cut", 200),
        ("bugs", 200),
    ],
)
def test_the_seeds_meet_what_they_are_there_for(soaked: Soaked, what: str, at_least: int) -> None:
    assert soaked.met[what] >= at_least


def test_a_seed_always_takes_the_same_course() -> None:
    def shape(seed: int) -> list[str]:
        return [line.split("run")[0] for line in simulate_consumers(seed).trace.lines()]

    for seed in range(10):
        assert shape(seed) == shape(seed)


def test_a_failing_seed_can_be_replayed_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    failure = hunt_by_seeds(MUTANTS["goes-on"])
    assert failure is not None
    assert search_main(failure.command.split()[3:]) == 1
    assert "I3" in capsys.readouterr().out
    assert main(["replay", "3", "--consumers"]) == 0


class Ledger:
    """A handler that keeps its books outside the transaction, and so must bear repeats."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def clear(self) -> None:
        self.seen.clear()

    def careful(self, batch: Batch) -> None:
        for message in batch:
            assert message["amount"] == message["seq"] * 2
            before = self.seen.get(batch.queue)
            assert before is None or message["seq"] <= before + 8
            self.seen[batch.queue] = max(message["seq"], before or message["seq"])

    def naive(self, batch: Batch) -> None:
        for message in batch:
            before = self.seen.get(batch.queue)
            self.repeats |= before is not None and message["seq"] <= before
            self.seen[batch.queue] = message["seq"]

    repeats = False


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    return Ledger()


def amount(queue: str, seq: int) -> dict[str, int]:
    del queue
    return {"amount": seq * 2}


def test_a_handler_of_ones_own_can_be_simulated(ledger: Ledger) -> None:
    done = simulate(ledger.careful, seeds=100, setup=ledger.clear, fields=amount)
    assert done.seeds == 100
    assert done.met["batches"] > 200
    assert done.met["functions killed"] > 20


def test_the_simulation_of_ones_own_handler_shows_it_repeats(ledger: Ledger) -> None:
    simulate(ledger.naive, seeds=50, setup=ledger.clear)
    assert ledger.repeats


def test_a_check_of_ones_own_that_fails_names_the_seed_and_how_to_see_it_again() -> None:
    def no_repeats(given: dict[tuple[str, str], list[int]]) -> None:
        for seqs in given.values():
            assert len(set(seqs)) == len(seqs), "a message came twice"

    with pytest.raises(SimulationFailure, match="a message came twice") as caught:
        simulate(lambda batch: None, seeds=100, check=no_repeats)  # noqa: ARG005  # it does nothing
    assert "simulate(handler, start=" in caught.value.command


def test_effects_in_the_transaction_of_ones_own_handler_happen_once() -> None:
    def pay(batch: Batch) -> None:
        for message in batch:
            batch.transaction.put("Paid", {"id": f"{batch.queue}/{message['seq']}"})

    assert simulate(pay, seeds=100).met["effects"] > 100
