"""Which sink the settings mean, what messages are called there, what is too large, what the log shows."""

from __future__ import annotations

import json
import logging
import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_sort.errors import HandlerProblem, PartlyDone, SettingsError
from stream_sort.model.batch import Batch
from stream_sort.settings import SinkSettings
from stream_sort.sinks import make_sink
from stream_sort.sinks.choose import SINKS, make_client
from stream_sort.sinks.identity import FIFO_ALPHABET, deduplication_id, group_id, partition_key, xml_safe
from stream_sort.sinks.progress import SinkEntry, cut

if TYPE_CHECKING:
    from collections.abc import Callable

ACCOUNT = "eu-west-1:123456789012"
TARGETS = {
    "log": "",
    "sqs-fifo": "https://sqs.eu-west-1.amazonaws.com/123456789012/out.fifo",
    "sns-fifo": f"arn:aws:sns:{ACCOUNT}:out.fifo",
    "kinesis": "out",
    "eventbridge": "default",
    "lambda": "handle",
}
LONG_NAME = "q" * 129
QUEUE_NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=300)


def batch_of(*messages: dict[str, Any], queue: str = "ada") -> Batch:
    seqs = tuple(range(len(messages)))
    return Batch(queue=queue, after=-1, through=len(messages) - 1, messages=messages, seqs=seqs)


class Unreachable:
    """A client that no call may reach."""


class Recorder:
    """A client that takes every call and remembers it."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        def call(**request: Any) -> dict[str, Any]:
            self.calls.append(request)
            return {
                "MessageId": str(len(self.calls)),
                "SequenceNumber": str(len(self.calls)),
                "Entries": [{"EventId": "e"} for _ in request.get("Entries", ())],
            }

        return call


def sink_named(name: str, client: Any) -> Callable[[Batch], int | None]:
    return make_sink(SinkSettings(sink=name, sink_target=TARGETS[name]), client)


def test_an_unknown_sink_is_refused_with_the_list_of_sinks() -> None:
    with pytest.raises(SettingsError, match=r"'sqs'; there are log, sqs-fifo, sns-fifo, kinesis, eventbridge, lambda"):
        make_sink(SinkSettings(sink="sqs", sink_target=TARGETS["sqs-fifo"]))


@pytest.mark.parametrize(
    ("sink", "target"),
    [
        ("log", "out.fifo"),
        ("sqs-fifo", ""),
        ("sqs-fifo", "https://sqs.eu-west-1.amazonaws.com/123456789012/standard"),
        ("sqs-fifo", "out.fifo"),
        ("sns-fifo", ""),
        ("sns-fifo", f"arn:aws:sns:{ACCOUNT}:standard"),
        ("sns-fifo", f"arn:aws:sqs:{ACCOUNT}:out.fifo"),
        ("kinesis", ""),
        ("kinesis", f"arn:aws:sns:{ACCOUNT}:out.fifo"),
        ("eventbridge", ""),
        ("eventbridge", "my bus"),
        ("lambda", ""),
        ("lambda", "https://abc.lambda-url.eu-west-1.on.aws/"),
    ],
)
def test_a_target_that_cannot_be_one_is_refused_with_what_it_must_be(sink: str, target: str) -> None:
    with pytest.raises(SettingsError, match="it must be") as refused:
        make_sink(SinkSettings(sink=sink, sink_target=target), Unreachable())
    assert repr(target) in str(refused.value)
    assert SINKS[sink].target_is in str(refused.value)


@pytest.mark.parametrize(
    ("sink", "target"),
    [
        *TARGETS.items(),
        ("sqs-fifo", "http://127.0.0.1:4566/000000000000/out.fifo"),
        ("kinesis", f"arn:aws-cn:kinesis:{ACCOUNT}:stream/out"),
        ("eventbridge", f"arn:aws:events:{ACCOUNT}:event-bus/orders"),
        ("lambda", f"arn:aws:lambda:{ACCOUNT}:function:handle:live"),
        ("lambda", "handle:$LATEST"),
    ],
)
def test_every_form_of_target_that_aws_knows_is_taken(sink: str, target: str) -> None:
    assert callable(make_sink(SinkSettings(sink=sink, sink_target=target), Unreachable()))


def test_a_client_needs_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(SettingsError, match="AWS_REGION"):
        make_client("sqs")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    client = make_client("sqs")
    assert client.meta.region_name == "eu-west-1"
    client.close()


@pytest.mark.parametrize(
    ("sink", "target", "region"),
    [
        ("sqs-fifo", "https://sqs.eu-west-1.amazonaws.com/123456789012/out.fifo", "eu-west-1"),
        ("sqs-fifo", "https://eu-west-1.queue.amazonaws.com/123456789012/out.fifo", "eu-west-1"),
        ("sqs-fifo", "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/out.fifo", "cn-north-1"),
        ("sqs-fifo", "http://localhost:4566/000000000000/out.fifo", "us-east-2"),
        ("sns-fifo", "arn:aws:sns:eu-west-1:123456789012:out.fifo", "eu-west-1"),
        ("kinesis", "arn:aws:kinesis:eu-west-1:123456789012:stream/out", "eu-west-1"),
        ("kinesis", "out", "us-east-2"),
        ("eventbridge", "arn:aws:events:eu-west-1:123456789012:event-bus/out", "eu-west-1"),
        ("lambda", "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:handle:live", "us-gov-west-1"),
        ("lambda", "123456789012:function:handle", "us-east-2"),
    ],
)
def test_a_target_of_another_region_is_asked_there(
    sink: str, target: str, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    monkeypatch.setattr(boto3.session.Session, "client", lambda *_, region_name, **__: asked.append(region_name))
    make_sink(SinkSettings(sink=sink, sink_target=target))
    assert asked == [region]


def test_a_function_is_not_invoked_again_behind_the_consumers_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    client = make_client("lambda")
    assert client.meta.config.retries["total_max_attempts"] == 1
    assert client.meta.config.read_timeout > 900
    client.close()


def test_the_log_sink_loads_no_sdk_and_another_only_its_own_module() -> None:
    code = (
        "import sys; from stream_sort.sinks import make_sink; from stream_sort.settings import SinkSettings;"
        "make_sink(SinkSettings()); assert 'botocore' not in sys.modules;"
        f"make_sink(SinkSettings(sink='sqs-fifo', sink_target={TARGETS['sqs-fifo']!r}), object());"
        "print(*sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('stream_sort.sinks.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["choose", "fifo", "identity", "log", "progress"]


@given(st.lists(QUEUE_NAMES, unique=True))
def test_two_queues_never_share_a_group_or_a_partition_key(queues: list[str]) -> None:
    for name_of in (group_id, partition_key):
        names = {name_of(queue) for queue in queues}
        hashed = {name_of(name) for name in names if name not in queues}
        assert len(names) == len(set(queues))
        assert not hashed & names, "a queue named like another queue's hash shares its group"


@given(QUEUE_NAMES)
def test_a_group_and_a_partition_key_are_what_aws_takes(queue: str) -> None:
    assert 1 <= len(group_id(queue)) <= 128
    assert FIFO_ALPHABET.issuperset(group_id(queue))
    assert 1 <= len(partition_key(queue)) <= 256


@pytest.mark.parametrize("queue", ["ada", "a/b:c", "q" * 128, "sha256:short", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"])
def test_a_queue_whose_name_aws_takes_is_its_own_group(queue: str) -> None:
    assert group_id(queue) == queue


@pytest.mark.parametrize("queue", [LONG_NAME, "two words", "ärger", "🚀", group_id("🚀"), "q" * 1024])
def test_any_other_queue_has_the_hash_of_its_name_for_a_group(queue: str) -> None:
    assert group_id(queue).startswith("sha256:")
    assert group_id(queue) != queue


@pytest.mark.parametrize(
    ("queue", "fits"), [("q" * 256, True), ("q" * 257, False), ("🚀" * 128, True), ("🚀" * 129, False)]
)
def test_a_queue_is_its_own_partition_key_up_to_256_characters_as_aws_counts_them(queue: str, *, fits: bool) -> None:
    assert (partition_key(queue) == queue) is fits


def test_names_are_the_same_in_every_process() -> None:
    assert group_id("two words") == "sha256:a03f1d611645eb53ad16c1af546ca0792dc884505bab57ede80f4dad6b911d3a"
    assert (
        deduplication_id("Items process", "ada", 7)
        == "0b84c57d8a1af0b3b325a455a2253b015a146feef8f97aec797f1aa41cd5234f"
    )


def test_every_sender_has_deduplication_ids_of_its_own() -> None:
    senders = ("Items a", "Items b", "Other a", "", "1", "1:1")
    ids = {deduplication_id(one, queue, seq) for one in senders for queue in ("a", "b:1", "1:a") for seq in (1, 2)}
    assert len(ids) == 36
    assert deduplication_id("x", "a", 1) == deduplication_id("x", "a", 1)


def test_a_sender_is_the_table_where_it_is_and_the_consumer() -> None:
    assert SinkSettings().sender == "Items process"
    assert SinkSettings(items_table="T", consumer="c").sender == "T c"
    assert SinkSettings(items_arn="arn:aws:dynamodb:r:1:table/T", items_table="T", consumer="c").sender == (
        "arn:aws:dynamodb:r:1:table/T c"
    )


def test_deduplication_ids_differ_where_queue_or_seq_do() -> None:
    places = [("a", 1), ("a", 11), ("a1", 1), ("1:a", 1), ("a", -1), ("b", 1)]
    assert len({deduplication_id("Items process", queue, seq) for queue, seq in places}) == len(places)


def test_characters_that_sqs_refuses_are_escaped_and_the_document_stays_the_same() -> None:
    document = {"text": "a\uffffb\ufffe\x7f🚀ä\u2028"}
    text = xml_safe(json.dumps(document, ensure_ascii=False))
    assert "\uffff" not in text
    assert "\ufffe" not in text
    assert json.loads(text) == document


@pytest.mark.parametrize(
    ("sink", "limit"),
    [
        ("sqs-fifo", 1_048_576),
        ("sns-fifo", 1_048_576),
        ("kinesis", 10_485_760),
        ("eventbridge", 1_000_000),
        ("lambda", 6_000_000),
    ],
)
def test_a_message_over_the_sinks_limit_is_named_and_never_sent(sink: str, limit: int) -> None:
    with pytest.raises(HandlerProblem, match=rf"queue 'ada', seq 0: .*over the limit of {limit:,}"):
        sink_named(sink, Unreachable())(batch_of({"text": "x" * limit}))


@pytest.mark.parametrize("sink", ["sqs-fifo", "sns-fifo", "kinesis", "eventbridge"])
def test_what_stands_before_a_message_that_is_too_large_is_delivered(sink: str) -> None:
    recorder = Recorder()
    with pytest.raises(PartlyDone) as stopped:
        sink_named(sink, recorder)(batch_of({"n": 0}, {"n": 1}, {"text": "x" * 11_000_000}, {"n": 3}))
    assert stopped.value.last_done == 1
    assert "seq 2" in str(stopped.value.__cause__)
    assert '"n":3' not in str(recorder.calls).replace(" ", "")


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 12))
def test_cutting_loses_nothing_keeps_the_order_and_fits_the_limits(sizes: list[int], count: int) -> None:
    whole = [SinkEntry(seq, "", size) for seq, size in enumerate(sizes)]
    pieces = list(cut(whole, 30, count))
    assert [entry for piece in pieces for entry in piece] == whole
    assert all(len(piece) <= count for piece in pieces)
    assert all(sum(entry.size for entry in piece) <= 30 for piece in pieces if len(piece) > 1)


def test_the_log_sink_writes_one_line_a_batch_and_no_payload(capsys: pytest.CaptureFixture[str]) -> None:
    make_sink(SinkSettings())(batch_of({"secret": "s3cret"}, {"secret": "s3cret"}, queue="ада 🚀"))
    out = capsys.readouterr()
    assert "s3cret" not in out.out + out.err
    assert json.loads(out.out) == {"sink": "log", "queue": "ада 🚀", "after": -1, "through": 1, "count": 2}


def test_the_log_sink_shows_the_messages_at_debug(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="stream_sort"):
        make_sink(SinkSettings())(batch_of({"n": 0}, {"n": 1}))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [{"queue": "ada", "seq": seq, "message": {"n": seq}} for seq in (0, 1)]


@pytest.mark.parametrize("sink", ["sqs-fifo", "sns-fifo", "kinesis"])
def test_what_stands_before_a_message_that_has_no_json_form_is_delivered(sink: str) -> None:
    with pytest.raises(PartlyDone) as stopped:
        sink_named(sink, Recorder())(batch_of({"n": 0}, {"n": math.nan}))
    assert stopped.value.last_done == 0
    assert "seq 1" in str(stopped.value.__cause__)


@pytest.mark.parametrize("sink", [name for name in TARGETS if name != "log"])
def test_a_batch_of_nothing_but_skipped_seqs_makes_no_call(sink: str) -> None:
    assert sink_named(sink, Unreachable())(Batch(queue="ada", after=3, through=9, messages=(), seqs=())) is None
