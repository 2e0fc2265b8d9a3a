"""Texts of people and programs: message files, events for `local invoke`, variables, times, seqs, policies, offsets."""

from __future__ import annotations

import io
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.cli.arguments import seqs_of
from stream_sort.cli.loading import Loader, Rejects
from stream_sort.cli.local import read_event
from stream_sort.cli.message_file import entries
from stream_sort.cli.messages import _beginning
from stream_sort.cli.redriver import DELIVERED, Redriver
from stream_sort.errors import InvalidInput, StreamSortError
from stream_sort.formats.json_text import dumps, loads
from stream_sort.local.project import with_names_of
from stream_sort.model.consumption import Parked, check_consumer, check_start
from stream_sort.model.gap_policy import GapPolicy
from stream_sort.model.message import check_queue, is_text
from stream_sort.model.table_names import check_table_name
from stream_sort.replay.ranges import Selection, parse_time, queue_names, seq_number
from stream_sort.replay.source.options import KNOWN, source_options
from stream_sort.replay.source.positions import packed, unpacked
from stream_sort.settings import PREFIX, ConsumerSettings, EnqueueSettings, Settings, SinkSettings
from stream_sort.stream_sorter import StreamSorter as Sorter
from tests.properties.fuzz.events import CONTENTS, INTAKE, MESSAGES
from tests.properties.fuzz.target import Target
from tests.properties.fuzz.values import DEEP, TEXTS, VALUES, WHOLE, as_json, bitten, mangled

LINES = st.lists(mangled(MESSAGES) | VALUES, max_size=5).map(lambda each: "\n".join(map(json.dumps, each)).encode())
MESSAGE_FILES = bitten(LINES | as_json(CONTENTS) | as_json(st.lists(MESSAGES, max_size=5))) | st.binary()
SYNTAX = st.text('[]{},:"0123456789\\ueE+-. \n\tnulltrfas', max_size=40)
JSON_TEXTS = bitten(as_json(VALUES)) | SYNTAX.map(str.encode) | DEEP
CLASSES = (Settings, ConsumerSettings, SinkSettings, EnqueueSettings)
VARIABLES = sorted({PREFIX + name.upper() for one in CLASSES for name in one.__dataclass_fields__})
NUMBER_TEXTS = WHOLE.map(str) | st.floats().map(str) | st.text("0123456789-.:TZ+_ e", max_size=26)
POLICIES = st.sampled_from(["wait", "skip after 60 seconds", "skip after 1e400 seconds", "skip after -1 seconds"])
WORDS = st.sampled_from(["earliest", "latest", "report", "raise", "park", "dead_letter", "true", "false", "Items"])
LISTS = (
    st.lists(TEXTS | WHOLE, max_size=3).map(lambda each: json.dumps(each)[1:]) | SYNTAX | DEEP.map(bytes.decode)
).map(lambda text: f"[{text}")
ARGUMENTS = TEXTS | LISTS | NUMBER_TEXTS | POLICIES | WORDS
OFFSETS = mangled(
    st.builds(packed, st.dictionaries(TEXTS.filter(is_text), WHOLE, max_size=3))
    | st.fixed_dictionaries({"format": st.just(1), "positions": TEXTS})
)
ANSWER = {"queues": 1, "delivered": 0, "failed": 1, "errors": [{"queue": "q", "seq": 7, "error": "no"}], "left": 0}


def check_message_file(raw: bytes) -> None:
    """Every entry has one outcome; what is stored is among the entries as they were read."""
    sorter = StreamSorter.in_memory()
    found = list(entries(io.BytesIO(raw)))
    with tempfile.TemporaryDirectory() as folder:
        rejects = Path(folder) / "rejects"
        loader = Loader(sorter, Rejects(rejects))
        loader.load(found, lambda _: None)
        refused = rejects.read_text(encoding="utf-8").splitlines() if rejects.exists() else []
    assert loader.loaded.total == len(found)
    assert len([json.loads(line) for line in refused]) == loader.loaded.refused
    given = {repr(entry.document) for entry in found if not entry.error}
    held = sorter.stores.items._tables.queues.values()
    assert {repr(item.document) for queue in held for item in queue.entries().values()} <= given


def check_json_text(raw: bytes) -> None:
    """What is taken, Python's own reader takes as the same; and it can be written and read again."""
    value = loads(raw)
    assert repr(json.loads(raw)) == repr(value)
    with suppress(InvalidInput):
        assert repr(loads(dumps(value))) == repr(value)


def check_local_event(text: str) -> None:
    """Is an event, which the stack's names can be put into."""
    if text.strip() != "-":
        with_names_of({"ItemsTable": "i", "CursorTable": "c"}, read_event(text))


def check_variables(environ: dict[str, str]) -> None:
    """Every class of settings is made, or refused by name; and so is what is made of it."""
    for one in CLASSES:
        with suppress(StreamSortError):
            one.from_env(environ)
    settings = Settings.from_env(environ)
    Sorter.in_memory(
        queue_key=settings.queue_key,
        seq_key=settings.seq_key,
        first_seq=settings.first_seq,
        gap_policy=settings.gap_policy,
        in_flight=min(settings.in_flight, 4),
    ).put({settings.queue_key: "q", settings.seq_key: settings.first_seq})


def check_argument(text: str) -> None:
    """Each reader of an argument takes it or refuses it by name; one that takes it tells it again."""
    for reader in (
        *(seqs_of, _beginning, check_queue, check_consumer, check_start, check_table_name, queue_names),
        *(lambda one: parse_time(one, "--since"), lambda one: seq_number(one, "--from-seq")),
        lambda one: Selection(since=parse_time(one, "--since")),
        lambda one: Selection(from_seq=seq_number(one, "--from-seq")),
    ):
        with suppress(StreamSortError):
            reader(text)
    policy = GapPolicy.parse(text)
    assert GapPolicy.parse(str(policy)) == policy


def check_redrive_answer(payload: bytes) -> None:
    """Whatever a function answers, each try comes to something; only its own answer is a delivery."""

    class Endpoint:
        def invoke(self, **_: Any) -> Any:
            return {"Payload": io.BytesIO(payload)}

    stuck = Parked("q", 7, error="", attempts=1, since=0.0, next_try=None)
    sorter = StreamSorter.in_memory()
    consumer = OrderedConsumer("process", sorter=sorter)
    (tried,) = Redriver(Endpoint(), "process", consumer, sorter.stores.control("Control")).redrive([stuck])
    assert (tried.queue, tried.seq, type(tried.error)) == ("q", 7, str)
    assert isinstance(tried.delivered, int)
    assert tried.outcome != DELIVERED or json.loads(payload)["errors"] == []


def check_offset(offset: Any) -> None:
    """Holds positions, or is refused by name."""
    assert all(isinstance(position, int) for position in unpacked(offset).values())


TARGETS = (
    Target("message_file", MESSAGE_FILES, check_message_file),
    Target("json_text", JSON_TEXTS, check_json_text),
    Target("local_event", TEXTS | mangled(INTAKE).map(json.dumps) | SYNTAX, check_local_event),
    Target("variables", st.dictionaries(st.sampled_from(VARIABLES), ARGUMENTS), check_variables),
    Target("argument", ARGUMENTS, check_argument),
    Target("source_options", st.dictionaries(st.sampled_from(KNOWN) | TEXTS, ARGUMENTS), source_options),
    Target("redrive_answer", bitten(as_json(mangled(st.just(ANSWER))), most=1), check_redrive_answer),
    Target("offset", OFFSETS, check_offset),
)
