"""The deployed template, under load and in trouble: judged by what comes out of the sink."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.local.settlement import STACK
from stream_sort.local.stack import LocalStack
from stream_sort.local.tools import environment
from stream_sort.upkeep.lag_watch import PATIENCE
from tests.local_stack.app import App, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.ministack, pytest.mark.timeout(1200)]

LIBRARY_PAGE = Path(__file__).parents[2] / "docs" / "library.md"
# `make load` asks for more: 20,000 messages, 50 queues, 20 kills.
MESSAGES, QUEUES, KILLS = (int(number) for number in os.environ.get("LOAD", "4000 20 6").split())
JITTER, BURST = 40, 70
# The local SQS hands out ten bodies at a time; lists in them make batches as large as those of AWS.
IN_A_BODY = 10


@pytest.fixture(scope="module")
def app() -> Iterator[App]:
    with LocalStack.leashed(parameters={"VisibilityTimeout": "5"}) as stack, App(stack) as app:
        yield app


def shuffled(queues: int, each: int, seed: int) -> list[dict[str, Any]]:
    """Messages of many queues, in bursts, each out of order, one in twenty of them twice."""
    rng = random.Random(seed)
    bursts: list[tuple[float, list[tuple[int, int]]]] = []
    for queue in range(queues):
        seqs = [*range(each), *rng.sample(range(each), each // 20)]
        seqs.sort(key=lambda seq: seq + rng.uniform(0, JITTER))
        starts = range(0, len(seqs), BURST)
        bursts += [
            (start + rng.uniform(0, BURST), [(queue, seq) for seq in seqs[start : start + BURST]]) for start in starts
        ]
    places = [place for _, burst in sorted(bursts) for place in burst]
    return [{"queue": f"load-{queue}", "seq": seq, "text": f"{queue}/{seq}"} for queue, seq in places]


def test_i3_i8_a_load_with_killed_functions_comes_out_complete_and_in_order(app: App) -> None:
    messages = shuffled(QUEUES, MESSAGES // QUEUES, seed=1)
    began = time.monotonic()
    sender = threading.Thread(target=app.send, args=(messages, IN_A_BODY), daemon=True)
    sender.start()
    rng = random.Random(2)
    while len(app.killed) < KILLS:
        time.sleep(rng.uniform(0.5, 3.0))
        app.kill(rng.choice(("enqueue", "process", "process")))
        app.note_checkpoints()
    sender.join()

    def done() -> bool:
        app.note_checkpoints()
        return app.all_delivered()

    assert eventually(done, seconds=600, every=1.0), str(app.history.judge())
    verdict = app.history.judge()
    seconds = time.monotonic() - began
    print(f"\n{verdict}; {len(app.killed)} functions killed, {seconds:.0f} s, {MESSAGES / seconds:.0f} a second")
    assert verdict.is_clean, str(verdict)
    assert verdict.sent == MESSAGES


def test_a_body_that_is_no_message_goes_to_the_dead_letters_and_holds_up_nobody(app: App) -> None:
    url = app.stack.outputs["EnqueueDeadLettersUrl"]
    app._sqs.send_message(QueueUrl=app.stack.outputs["EnqueueQueueUrl"], MessageBody="no message at all")
    app.send([{"queue": "beside", "seq": seq} for seq in range(20)])
    assert eventually(lambda: app.is_delivered("beside", 20))

    def is_dead() -> bool:
        asked = app._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
        return int(asked["Attributes"]["ApproximateNumberOfMessages"]) == 1

    assert eventually(is_dead, seconds=120)


def test_a_gap_is_skipped_by_its_queues_policy_when_the_sweep_comes(app: App) -> None:
    app.put({"queue": "gapped", "seq": 0}, {"queue": "gapped", "seq": 3})
    app.sorter.set_policy("gapped", skip_after=0.5)
    assert eventually(lambda: app.is_delivered("gapped", 1))
    time.sleep(0.6)
    # Or the one of the schedule, should that come first.
    app.stack.invoke("sweep", {})
    assert eventually(lambda: app.is_delivered("gapped", 2))
    assert app.history.delivered["gapped"] == [0, 3]
    del app.history.sent["gapped"], app.history.delivered["gapped"]


def test_two_consumers_have_checkpoints_of_their_own(app: App) -> None:
    app.put(*({"queue": "shared", "seq": seq} for seq in range(10)))
    seen: list[int] = []
    audit = app.consumer("audit", lambda batch: seen.extend(batch.seqs))
    late = app.consumer("late", start=7)
    assert audit.catch_up("shared") == 10
    assert late.catch_up("shared") == 3
    assert seen == list(range(10))
    assert eventually(lambda: app.consumer("process").checkpoint("shared") == 9)
    assert eventually(lambda: app.is_delivered("shared", 10))


def test_i8_what_the_stream_lost_is_delivered_after_a_sweep(app: App) -> None:
    app.put({"queue": "asleep", "seq": 0})
    assert eventually(lambda: app.is_delivered("asleep", 1))
    with app.stream_lost():
        app.put(*({"queue": "asleep", "seq": seq} for seq in range(1, 6)))
        time.sleep(PATIENCE + 1)
        assert app.history.delivered["asleep"] == [0]
    # The schedule may sweep by itself, before this or after it: that is as good.
    app.stack.invoke("sweep", {})
    assert eventually(lambda: app.is_delivered("asleep", 6))
    assert app.history.delivered["asleep"] == list(range(6))
    row = app.sorter.stores.cursors.get("asleep")
    assert row is not None
    assert row.nudges > 0, "it was delivered without a nudge: the stream had lost nothing"


def test_a_program_needs_the_name_of_the_stack_and_no_more(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", app.stack.endpoint)
    blocks = re.findall(r"^```python no-run\n(.*?)^```", LIBRARY_PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (program,) = [block for block in blocks if "StreamSorter.from_stack(" in block]
    received: list[int] = []
    code: dict[str, Any] = {"handle": lambda batch: received.extend(message["seq"] for message in batch)}
    exec(
        compile(program.replace('"orders"', f'"{STACK}"').replace('"ada"', '"program"'), "docs/library.md", "exec"),
        code,
    )
    assert received == [0]
    assert app.sorter.position("program") == 0
