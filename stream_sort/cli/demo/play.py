"""`stream-sort demo`: the whole app on a local AWS, under a load that is shuffled, doubled, gapped and poisoned."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stream_sort import StreamSorter
from stream_sort.cli.demo.traffic import Board, DemoOutcome, judge
from stream_sort.cli.demo.workers import WRITERS, Scout, Senders, costs_of
from stream_sort.errors import StreamSortError
from stream_sort.local.stack import LocalStack
from stream_sort.program import program

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.cli.demo.traffic import DemoTraffic
    from stream_sort.cli.demo.view import View

PATIENCE = 120.0
# A body that cannot be stored is tried this often, then SQS sets it aside; a short time between two tries, for a demo.
PARAMETERS = {"VisibilityTimeout": "3"}


def run(traffic: DemoTraffic, view: View, *, keep: bool = False) -> DemoOutcome:
    """Run the demo; the stack it ran on is gone when it ends, however it ends, unless it is to be kept."""
    stays = "it stays up" if keep else "gone when this ends"
    view.step(f"Deploy template.yaml to a local AWS (no Docker, no account, {stays})")
    stack = _deploy(view, keep=keep)
    try:
        return _Demo(view, traffic, stack, keep=keep).play()
    finally:
        if not keep:
            stack.down()


def _deploy(view: View, *, keep: bool) -> LocalStack:
    if not keep:
        return LocalStack.leashed(parameters=PARAMETERS, report=view.say)
    LocalStack.take_down()
    return LocalStack.up(parameters=PARAMETERS, report=view.say)


def what_next(command: str, *, keep: bool) -> list[str]:
    """Return what to try after a demo, and what it left running."""
    first = ["\n   Next: a stack that stays         {} local up"]
    if keep:
        first = [
            "\n   The stack is still up.",
            "Next: what is in it             {} local status",
            "      end it                    {} local down",
        ]
    own = "      your own handler          {} local up --handler my_handler.py:handle"
    return [line.format(command) for line in [*first, own, "      in your account           make deploy"]]


@dataclass(slots=True)
class _Saboteur:
    """Kills a function's processes when so much has been sent."""

    stack: LocalStack
    moments: list[tuple[int, str]]
    killed: list[str] = field(default_factory=list)

    def strike(self, sent: int) -> None:
        """Do what is due; a function that does not run just now is waited for."""
        while self.moments and sent >= self.moments[0][0]:
            step = self.moments[0][1]
            workers = self.stack.workers(step)
            if not workers:
                return
            with suppress(ProcessLookupError):
                os.kill(workers[0], signal.SIGKILL)
                self.killed.append(step)
            self.moments.pop(0)


class _Demo:
    """One demo on a stack that is up."""

    def __init__(self, view: View, traffic: DemoTraffic, stack: LocalStack, *, keep: bool) -> None:
        self._keep = keep
        self._view = view
        self._traffic = traffic
        self._stack = stack
        self._board = Board(traffic.lengths)
        self._senders = Senders(stack, self._board)

    def play(self) -> DemoOutcome:
        """Run all steps; return what came of them."""
        with Scout(self._stack, self._board) as scout:
            self._send(scout)
            self._explain()
            self._close_gap(scout)
            self._await_poison()
        return self._judge(scout)

    def _send(self, scout: Scout) -> None:
        traffic, view = self._traffic, self._view
        total = sum(len(parcel.messages) for parcel in traffic.parcels)
        view.step(f"Send {total:,} messages to {len(traffic.lengths)} queues: shuffled, some twice, one held back")
        invokes = sum(parcel.by_invoke for parcel in traffic.parcels)
        view.say(f"{WRITERS} writers at once: {invokes:,} direct invokes, all else through SQS; one body is poison")
        steps = ("process", "enqueue", "process")
        saboteur = _Saboteur(self._stack, [(total * n // 4, step) for n, step in enumerate(steps, 1)])
        self._senders.send_poison()
        began = time.monotonic()
        with view.watch(self._board) as watch:

            def look() -> None:
                watch.refresh()
                scout.check()
                saboteur.strike(self._board.total("sent"))

            self._senders.send(traffic, look, watch.every)
            view.say("all sent; waiting until everything that can come out has come out")
            held_back = self._held_back()
            self._wait(lambda: self._board.total("delivered") >= traffic.total - held_back, look, watch.every)
        seconds = time.monotonic() - began
        killed = ", ".join(saboteur.killed) or "none"
        view.say(f"{self._board.total('delivered'):,} delivered in {seconds:.1f} s; Lambda processes killed: {killed}")

    def _held_back(self) -> int:
        """Count the messages that cannot come out before the missing one is there."""
        missing = self._traffic.held_back
        return int(self._traffic.lengths[missing["queue"]] - missing["seq"])

    def _wait(self, until: Callable[[], bool], look: Callable[[], None], every: float) -> None:
        deadline = time.monotonic() + PATIENCE
        while not until():
            if time.monotonic() > deadline:
                raise StreamSortError(f"not done after {PATIENCE:.0f} s; {self._where_it_is()}")
            time.sleep(every)
            look()

    def _where_it_is(self) -> str:
        counts = self._board.counts.items()
        behind = [f"{queue!r} delivered {one.delivered:,} of {one.released:,} released" for queue, one in counts]
        return "; ".join(behind)

    def _explain(self) -> None:
        queue = self._traffic.held_back["queue"]
        self._view.step(f'Ask why "{queue}" is stuck')
        with closing(self._stack.client("dynamodb")) as client:
            outputs = self._stack.outputs
            sorter = StreamSorter(outputs["ItemsTable"], outputs["CursorTable"], client=client)
            self._view.explain(sorter.explain(queue), time.time())

    def _close_gap(self, scout: Scout) -> None:
        missing = self._traffic.held_back
        self._view.step(f"Send the missing message: seq {missing['seq']:,}")
        with self._view.watch(self._board) as watch:
            answer = self._senders.put(missing)

            def look() -> None:
                watch.refresh()
                scout.check()

            self._wait(lambda: self._board.total("delivered") >= self._traffic.total, look, watch.every)
            # What comes a second time comes now.
            time.sleep(1.0)
        advance = answer["advances"][0]
        jump = f"jumped from {advance['old']:,} to {advance['new']:,}: {advance['released']:,} messages released"
        self._view.say(f'"{missing["queue"]}" {jump} by one message')

    def _await_poison(self) -> None:
        url = self._stack.outputs["EnqueueDeadLettersUrl"]
        with closing(self._stack.client("sqs")) as sqs:

            def is_there() -> bool:
                asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
                return int(asked["Attributes"]["ApproximateNumberOfMessages"]) > 0

            self._wait(is_there, lambda: None, 0.5)
        self._view.say("the poison body delayed no queue: it is in the dead letters of the enqueue queue")

    def _judge(self, scout: Scout) -> DemoOutcome:
        view, board = self._view, self._board
        view.step("Compare what came out of the sink with what was sent")
        verdicts = judge(scout.delivered, self._traffic.lengths)
        view.results(board, verdicts)
        view.facts(costs_of(self._stack, self._traffic.total))
        outcome = DemoOutcome(self._traffic.total, verdicts)
        if not outcome.good:
            problems = [f'"{verdict.queue}": {verdict.problem}' for verdict in verdicts if verdict.problem]
            view.verdict("; ".join(problems), good=False)
            return outcome
        view.verdict(f"{self._traffic.total:,} messages came out: every queue in order, nothing missing", good=True)
        for line in what_next(program(), keep=self._keep):
            view.say(line)
        return outcome
