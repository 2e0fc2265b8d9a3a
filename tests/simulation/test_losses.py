"""A queue that loses messages keeps up, and a sweep that restarts the clock or skips one gap does not."""

import pytest

from stream_sort.testing.simulation.failure import SimulationFailure
from tests.simulation.losses import Losses, simulate_even, simulate_stream
from tests.simulation.mutants import MUTANTS


def test_a_lossy_stream_stays_near_its_end_for_a_simulated_hour() -> None:
    simulate_stream(Losses())


def test_every_second_seq_is_released_within_one_policy_time_and_one_sweep() -> None:
    simulate_even(400, skip_after=10)


@pytest.mark.parametrize("name", ["restarted-clock", "first-gap-only"])
def test_a_lossy_stream_shows_what_does_not_keep_up(name: str) -> None:
    with pytest.raises(SimulationFailure, match="G2") as caught:
        simulate_stream(Losses(), MUTANTS[name])
    assert "messages behind" in str(caught.value)


def test_every_second_seq_shows_a_sweep_that_skips_only_the_first_gap() -> None:
    with pytest.raises(SimulationFailure, match="released through"):
        simulate_even(400, skip_after=10, variant=MUTANTS["first-gap-only"])
