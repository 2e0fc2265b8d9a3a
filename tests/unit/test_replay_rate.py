"""A rate that a whole job keeps to."""

from __future__ import annotations

import pickle
import socket
import threading
import time

import pytest

from stream_sort.errors import SettingsError, StoreUnavailable
from stream_sort.replay.origins.rate import KeeperAddress, Pacer, Rate, RateKeeper


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
    goes_on: list[float] = []
    try:
        rate = Rate(1_000.0, keeper.address)

        def task() -> None:
            mine = pickle.loads(pickle.dumps(rate))
            for _ in range(5):
                waited.append(mine.wait_after(10))
                goes_on.append(time.monotonic() + waited[-1])

        began = time.monotonic()

        threads = [threading.Thread(target=task) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        keeper.close()
    assert len(waited) == 20
    assert max(waited) <= 0.2
    # All together: 200 units at 1,000 a second, however slow the tasks are.
    assert max(goes_on) - began > 0.19


def test_whoever_does_not_know_the_word_gets_no_answer() -> None:
    keeper = RateKeeper("127.0.0.1")
    try:
        address = KeeperAddress(keeper.address.host, keeper.address.port, "guess")
        with pytest.raises(StoreUnavailable, match="does not answer"):
            Rate(10.0, address).used(1)
    finally:
        keeper.close()


@pytest.mark.parametrize(
    "question", [b"5\n", b'["\xc3\xa9", 1, 1, 1]\n', b'["\\ud800", 1, 1, 1]\n', b"[" * 900 + b"\n", b"\xff\n"]
)
def test_whatever_a_stranger_asks_the_keeper_goes_on_and_says_nothing(
    question: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    keeper = RateKeeper("127.0.0.1")
    try:
        with socket.create_connection((keeper.address.host, keeper.address.port), 10) as line:
            line.sendall(question)
            assert line.recv(100) == b""
        assert Rate(1_000.0, keeper.address).wait_after(1.0) >= 0
    finally:
        keeper.close()
    assert capsys.readouterr().err == ""


def test_a_rate_is_above_zero() -> None:
    with pytest.raises(SettingsError, match="maxReadUnits"):
        Rate(0.0, KeeperAddress("127.0.0.1", 1, ""))
