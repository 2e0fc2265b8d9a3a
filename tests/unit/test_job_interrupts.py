from __future__ import annotations

import os
import signal
import socketserver
import threading
import time
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.replay.engine import interrupts
from stream_sort.replay.engine.interrupts import interrupts_told, interrupts_wait
from stream_sort.replay.engine.session import _leave_quietly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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


def call_java(work: Callable[[], object]) -> None:
    """As a function of the library that speaks with Java."""
    names: dict[str, Any] = {"__name__": "py4j.java_gateway"}
    exec("def call(work): work()", names)
    names["call"](work)


def test_ctrl_c_lets_a_call_to_java_end_first() -> None:
    ended = []

    def job() -> None:
        with interrupts_told():
            call_java(lambda: (press(), time.sleep(0.2), ended.append("the call")))
            time.sleep(30)
            ended.append("the job")

    with pytest.raises(KeyboardInterrupt):
        job()
    assert ended == ["the call"]


def test_a_job_that_ends_before_ctrl_c_could_stop_it_was_interrupted_all_the_same() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts_told():
        call_java(press)


def test_what_an_interrupted_job_fails_with_is_no_news() -> None:
    def fail() -> None:
        press()
        raise OSError("no connection")

    with pytest.raises(KeyboardInterrupt), interrupts_told():
        call_java(fail)


def test_pressed_again_ctrl_c_lets_the_job_tidy_up() -> None:
    tidy = []

    def job() -> None:
        with interrupts_told():
            try:
                press()
            finally:
                press()
                tidy.append(True)

    with pytest.raises(KeyboardInterrupt):
        job()
    assert tidy


def test_pressed_again_much_later_ctrl_c_breaks_off_what_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "PATIENCE", 0.0)

    def job() -> None:
        with interrupts_told():
            try:
                press()
            finally:
                press()
                pytest.fail("it hangs for ever")

    with pytest.raises(KeyboardInterrupt):
        job()


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


def _tell_error(server: Any) -> None:
    server.handle_error(None, ("127.0.0.1", 1))


def test_a_connection_that_breaks_off_while_spark_stops_is_no_news(capfd: pytest.CaptureFixture[str]) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.StreamRequestHandler) as server:
        stop = partial(_tell_error, server)
        context: Any = SimpleNamespace(_accumulatorServer=server, setLogLevel=lambda _: None, stop=stop)
        _leave_quietly(context)
    assert capfd.readouterr().err == ""
