from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from stream_sort.replay.jobs.interrupts import interrupts_told, interrupts_wait

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """A suite that runs in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_is_answered_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    said = []

    def job() -> None:
        with interrupts_told():
            try:
                press()
            finally:
                said.append(capfd.readouterr().err)

    with pytest.raises(KeyboardInterrupt):
        job()
    assert said[0].startswith("stream-sort: stopping")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_while_spark_starts_ctrl_c_is_answered_and_waits(capfd: pytest.CaptureFixture[str]) -> None:
    said = []

    def start() -> None:
        with interrupts_told(), interrupts_wait():
            press()
            said.append(capfd.readouterr().err)

    with pytest.raises(KeyboardInterrupt):
        start()
    assert said[0].startswith("stream-sort: stopping")


def test_who_ignores_ctrl_c_goes_on_to_ignore_it_whatever_spark_sets() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts_told(), interrupts_wait():
        press()
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_another_thread_leaves_ctrl_c_alone() -> None:
    entered = []

    def work() -> None:
        with interrupts_told(), interrupts_wait():
            entered.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert entered == [signal.default_int_handler]
