"""Archives and the due_reader of jobs: manifests, plans, marks, the owner, segments, records."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from stream_sort.errors import FileMissing, StreamSortError
from stream_sort.replay.backfill.ledger import Ledger, PartRecord
from stream_sort.replay.backfill.tally import RangeTally
from stream_sort.replay.engine.plan import JobPlan
from stream_sort.replay.files.paths import decode_queue
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive import owner, plan
from stream_sort.replay.origins.archive.folder_state import FolderState
from stream_sort.replay.origins.archive.folders import folders
from stream_sort.replay.origins.archive.manifest import parse, segment_name
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.archive.plan import SegmentPlan, mark_finished
from stream_sort.replay.origins.archive.segments import read_segment, write_segment
from stream_sort.replay.ranges import Part, Range, Selection
from tests.properties.fuzz.target import Target
from tests.properties.fuzz.values import TEXTS, VALUES, WHOLE, as_json, bitten, mangled
from tests.unit.slot_rows import slots

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import DrawFn

HELD = (Range("q", -1, 4), Range("q", 4, 7), Range("é/..", -1, 2))
MANIFEST = segment_name(HELD[0]) + ".json"
OWNER = owner.Owner("arn:aws:dynamodb:eu-west-1:123456789012:table/Items", "id")


@cache
def _archive() -> Mapping[str, bytes]:
    """The files of a sound archive with two queues."""
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(folder)
        for held in HELD:
            write_segment(storage, held, slots(held, skipped=[1]))
            one = SegmentPlan(held.queue, held.after, (held.through,))
            storage.write(one.name, one.text())
            mark_finished(storage, one)
        OWNER.claim(storage)
        return {name: storage.read(name) for name in storage.list()}


@cache
def _ledger() -> Mapping[str, bytes]:
    """The files of a job that was finished."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Storage(folder))
        ledger.begin(JobPlan({"sink": "jsonl"}, (Part(0, (HELD[0],)),), 1.0))
        ledger.commit(PartRecord(0, (RangeTally("q", -1, 4, 4, 5, missing=(Range("q", 1, 2),)),), ended=True))
        ledger.finish({"rows": 5})
        return {name: ledger.storage.read(name) for name in ledger.storage.list()}


@st.composite
def damaged(draw: DrawFn, files: Any) -> dict[str, bytes]:
    """Some files with one of them changed, lost or under another name."""
    found = dict(files())
    name = draw(st.sampled_from(sorted(found)))
    content = found.pop(name)
    how = draw(st.sampled_from(["lost", "moved", "changed", "mangled"]))
    if how == "moved":
        found[draw(st.sampled_from(sorted(found)))] = content
    elif how == "mangled" and name.endswith(".json"):
        found[name] = draw(as_json(mangled(st.just(json.loads(content)), VALUES | WHOLE)))
    elif how != "lost":
        found[name] = draw(bitten(st.just(content)))
    return found


def _manifests() -> Any:
    return mangled(st.just(json.loads(_archive()[MANIFEST])), VALUES | WHOLE, most=2)


def check_manifest(content: bytes) -> None:
    """A manifest that is taken can be used: it is that of its name, and made of what it says it is made of."""
    manifest = parse(content, MANIFEST, MANIFEST)
    assert isinstance(manifest.queue, str)
    for number in (manifest.after, manifest.through, manifest.rows, manifest.size):
        assert type(number) is int
    assert (manifest.name, len(manifest.range)) == (MANIFEST, manifest.rows)
    manifest.timed(Selection(since=1.0, until=2e9))
    assert parse(manifest.text(), MANIFEST, MANIFEST) == manifest


def check_plan(content: bytes) -> None:
    """A plan that is taken has segments that follow each other, and a name."""
    found = plan._parsed(content, "plan")
    assert all(type(end) is int for end in (found.after, *found.ends))
    assert sum(map(len, found.segments)) == found.through - found.after
    assert found.name
    assert found.mark


def check_archive(files: dict[str, bytes]) -> None:
    """What can be read of an archive is what was written, wherever it is damaged."""
    written = {
        (row["queue"], row["seq"]): row
        for held in HELD
        for batch in slots(held, skipped=[1])
        for row in batch.to_pylist()
    }
    with tempfile.TemporaryDirectory() as folder:
        storage = _stored(folder, files)
        with suppress(StreamSortError):
            OWNER.check(storage)
        origin = ArchiveOrigin(storage)
        for manifest in origin.manifests():
            for after in (manifest.after, manifest.after + 1):
                wanted = Range(manifest.queue, after, manifest.through)
                for batch in read_segment(storage, manifest, wanted):
                    assert all(written[row["queue"], row["seq"]] == row for row in batch.to_pylist())


def check_ledger(files: dict[str, bytes]) -> None:
    """A ledger is read, or refused by name; whoever resumes asks it all of this."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(_stored(folder, files))
        with suppress(StreamSortError):
            ledger.end()
        with suppress(StreamSortError):
            sum(record.rows + record.has_holes for record in ledger.records().values())
        there = ledger.plan()
        if there is not None:
            assert there.rows >= 0
            there.check({"sink": "jsonl"}, "here")


def check_names(names: list[str]) -> None:
    """Names in an archive tell what is there, whoever put them there."""
    FolderState.of(names).damage()
    list(folders(names, lambda _: names, _nothing))
    for name in names:
        with suppress(StreamSortError):
            decode_queue(name)


def _nothing(name: str) -> bytes:
    raise FileMissing(name)


def _stored(folder: str, files: Mapping[str, bytes]) -> Storage:
    for name, content in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Storage(folder)


SEGMENTS = st.sampled_from(
    ["queues/", "q-a", "plans/", "0" * 19, "9" * 19, "-" + "9" * 19, ".json", ".parquet", ".3.done"]
)
NAMES = st.lists(SEGMENTS | TEXTS, max_size=5).map("".join)

TARGETS = (
    Target("archive_manifest", bitten(as_json(st.deferred(_manifests)), most=1), check_manifest),
    Target(
        "archive_plan",
        as_json(
            mangled(
                st.builds(
                    lambda after, ends: {
                        "format": plan.FORMAT,
                        "version": plan.VERSION,
                        "queue": "q",
                        "after": after,
                        "ends": ends,
                    },
                    WHOLE,
                    st.lists(WHOLE, max_size=4),
                )
            )
        ),
        check_plan,
    ),
    Target("archive", damaged(_archive), check_archive),
    Target(
        "archive_names",
        st.lists(NAMES | st.deferred(lambda: st.sampled_from(sorted(_archive()))), max_size=8),
        check_names,
    ),
    Target("ledger", damaged(_ledger), check_ledger),
)
