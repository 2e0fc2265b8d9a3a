"""A rate that a whole job keeps to."""

from __future__ import annotations

import pickle
import threading

import pytest

from stream_sort.errors import SettingsError, StoreUnavailable
from stream_sort.replay.rate import KeeperAddress, Pacer, Rate, RateKeeper


def test_tasks_share_one_rate_whoever_is_at_work() -> None:
    now = [100.0]
    pacer = Pacer(lambda: now[0])
    assert [pacer.wait_after("job", 10, 5) for _ in range(3)] == [0.5, 1.0, 1.5]
    now[0] += 1.5
    assert pacer.wait_after("job", 10, 10) == 1.0
    assert pacer.wait_after("other job", 10, 10) == 1.0


def test_time_that_was_not_used_is_not_saved_up_for_a_burst() -> None:
    now = [0.0]
    pacer = Pacer(lambda: now[0])
    pacer.wait_after("job", 10, 10)
    now[0] += 3_600
    assert pacer.wait_after("job", 10, 10) == 1.0


def test_tasks_in_other_processes_ask_the_keeper() -> None:
    keeper = RateKeeper("127.0.0.1")
    waited: list[float] = []
    try:
        rate = Rate(1_000.0, keeper.address)

        def task() -> None:
            mine = pickle.loads(pickle.dumps(rate))
            waited.extend(mine.wait_after(10) for _ in range(5))

        threads = [threading.Thread(target=task) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        keeper.close()
    assert len(waited) == 20
    assert 0.1 < max(waited) <= 0.2


def test_whoever_does_not_know_the_word_gets_no_answer() -> None:
    keeper = RateKeeper("127.0.0.1")
    try:
        address = KeeperAddress(keeper.address.host, keeper.address.port, "guess")
        with pytest.raises(StoreUnavailable, match="does not answer"):
            Rate(10.0, address).used(1)
    finally:
        keeper.close()


def test_a_rate_is_above_zero() -> None:
    with pytest.raises(SettingsError, match="maxReadUnits"):
        Rate(0.0, KeeperAddress("127.0.0.1", 1, ""))
