from __future__ import annotations

import json
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream_sort.errors import ArchiveDamaged, InvalidInput, StoreUnavailable
from stream_sort.replay.files.readable import Readable
from stream_sort.replay.files.s3_objects import S3Objects
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive import segments
from stream_sort.replay.origins.archive.manifest import DATA, MANIFEST, parse
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.archive.segments import SegmentWriter, check_bytes, read_segment, write_segment
from stream_sort.replay.ranges import Part, Range, Selection
from stream_sort.replay.slots import SLOTS
from tests.unit.slot_rows import START, rows_of, slots

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stream_sort.replay.origins.archive.manifest import Manifest

HOSTILE = ["{x,y}", "a*b", "..", "_x", ".x", "007", "🙂", "A", "a", "a/b", "x" * 1024]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "archive"))


def made(held: Range, row_group_rows: int = 10, **how: Any) -> tuple[Manifest, bytes]:
    writer = SegmentWriter(held, row_group_rows)
    for batch in slots(held, **how):
        writer.take(batch)
    return writer.finish()


def stored(storage: Storage, *held: Range) -> list[Manifest]:
    kept = [made(one) for one in held]
    for manifest, data in kept:
        storage.write(manifest.data_name, data)
        storage.write(manifest.name, manifest.text())
    return [manifest for manifest, _ in kept]


def test_what_is_written_is_read_back_in_order_with_tombstones(storage: Storage) -> None:
    held = Range("q", -4, 60)
    manifest = write_segment(storage, held, slots(held, skipped=[0, 7]))
    assert rows_of(read_segment(storage, manifest, held)) == rows_of(slots(held, skipped=[0, 7]))
    assert (manifest.rows, manifest.tombstones) == (64, 2)


@pytest.mark.parametrize("batch_rows", [1, 3, 10, 11, 64])
def test_the_same_slots_make_the_same_bytes_however_they_come(batch_rows: int) -> None:
    held = Range("q", -1, 63)
    assert made(held, batch_rows=batch_rows) == made(held, batch_rows=5)


def large(held: Range, batch_rows: int) -> list[pa.RecordBatch]:
    """Some megabytes of slots that cannot be compressed: a row group has several pages."""
    chance = random.Random(1)
    rows = [
        {"queue": held.queue, "seq": seq, "arrived_at": chance.randrange(START), "item": chance.randbytes(800).hex()}
        for seq in range(held.after + 1, held.through + 1)
    ]
    cut = (rows[start : start + batch_rows] for start in range(0, len(rows), batch_rows))
    return [pa.RecordBatch.from_pylist(page, schema=SLOTS) for page in cut]


def test_the_pages_of_a_segment_do_not_depend_on_how_its_slots_come() -> None:
    held, found = Range("q", -1, 2_999), set[str]()
    for batch_rows in (1, 7, 1_025, 3_000):
        writer = SegmentWriter(held)
        for batch in large(held, batch_rows):
            writer.take(batch)
        found.add(writer.finish()[0].sha256)
    assert len(found) == 1


def test_late_messages_fill_row_groups_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "ROW_GROUP_BYTES", 300)
    row = {"queue": "q", "skipped": "lost", "late": "x" * 100}
    writer = SegmentWriter(Range("q", -1, 11))
    writer.take(pa.RecordBatch.from_pylist([{**row, "seq": seq} for seq in range(12)], schema=SLOTS))
    assert [group.rows for group in writer.finish()[0].row_groups] == [3, 3, 3, 3]


def test_row_groups_of_large_messages_are_small_however_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "ROW_GROUP_BYTES", 300)
    held = Range("q", -1, 63)
    manifest, data = made(held, row_group_rows=50)
    assert max(group.rows for group in manifest.row_groups) < 15
    for batch_rows in (1, 2, 64):
        assert made(held, row_group_rows=50, batch_rows=batch_rows) == (manifest, data)


def with_late(batches: list[pa.RecordBatch], seq: int) -> list[pa.RecordBatch]:
    """The same slots once a late message has come."""
    rows = rows_of(batches)
    rows[seq] |= {"late": '{"queue":"q","seq":3,"raw":"AA=="}', "binary": '[["raw"]]'}
    return [pa.RecordBatch.from_pylist(rows, schema=SLOTS)]


@pytest.mark.parametrize("between", [DATA, MANIFEST])
def test_two_runs_at_once_leave_a_whole_segment_though_a_late_message_comes_between_their_reads(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, between: str
) -> None:
    held = Range("q", -1, 59)
    before, after = slots(held, skipped=[3]), with_late(slots(held, skipped=[3]), 3)
    for one, other in ((before, after), (after, before)):
        with monkeypatch.context() as patched:
            overtake(patched, between, lambda other=other: write_segment(storage, held, other))
            manifest = write_segment(storage, held, one)
        check_bytes(storage, manifest)
        assert parse(storage.read(manifest.name), manifest.name, "") == manifest
        for name in (manifest.data_name, manifest.name):
            storage.delete(name)


def overtake(monkeypatch: pytest.MonkeyPatch, ending: str, other: Callable[[], object]) -> None:
    """Let another run write everything, just before the next file of a kind is written."""
    moments = [ending]

    def patch(method: str) -> None:
        write = getattr(Storage, method)

        def overtaken(self: Storage, name: str, content: bytes) -> Any:
            if moments and name.endswith(moments[0]):
                moments.clear()
                other()
            return write(self, name, content)

        monkeypatch.setattr(Storage, method, overtaken)

    patch("write")
    patch("put_if_absent")


@pytest.mark.parametrize("left", [b"", b"PAR1" * 99, bytes(5_000)])
def test_what_a_run_has_left_that_is_no_segment_is_written_over(storage: Storage, left: bytes) -> None:
    held = Range("q", -1, 59)
    foreign = made(held, skipped=[5])[1]
    for content in (left, foreign):
        storage.write("queues/q-q/0000000000000000000.parquet", content)
        manifest = write_segment(storage, held, slots(held))
        check_bytes(storage, manifest)
        assert rows_of(read_segment(storage, manifest, held)) == rows_of(slots(held))


def test_two_runs_that_write_over_the_same_remains_at_once_leave_a_whole_segment(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Range("q", -1, 59)
    storage.write("queues/q-q/0000000000000000000.parquet", b"remains")
    after = with_late(slots(held, skipped=[3]), 3)
    overtake(monkeypatch, MANIFEST, lambda: storage.write("queues/q-q/0000000000000000000.parquet", made_of(after)))
    manifest = write_segment(storage, held, slots(held, skipped=[3]))
    check_bytes(storage, manifest)
    assert storage.read(manifest.name) == manifest.text()


def made_of(batches: list[pa.RecordBatch]) -> bytes:
    writer = SegmentWriter(Range("q", -1, 59))
    for batch in batches:
        writer.take(batch)
    return writer.finish()[1]


def test_only_the_row_groups_in_a_range_are_read(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    (manifest,) = stored(storage, Range("q", -1, 59))
    asked = []
    read = pq.ParquetFile.iter_batches

    def noted(file: Any, *args: Any, **how: Any) -> Any:
        asked.append(how["row_groups"])
        return read(file, *args, **how)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    for after, through in ((14, 35), (9, 19), (58, 59)):
        wanted = Range("q", after, through)
        assert rows_of(read_segment(storage, manifest, wanted)) == rows_of(slots(wanted))
    assert asked == [[1, 2, 3], [1], [5]]


@pytest.mark.parametrize("queue", HOSTILE)
def test_any_queue_comes_back(storage: Storage, queue: str) -> None:
    held = Range(queue, -1, 12)
    write_segment(storage, held, slots(held))
    write_segment(storage, Range("other", -1, 3), slots(Range("other", -1, 3)))
    origin = ArchiveOrigin(storage, Selection(queues=(queue,)))
    assert origin.ranges() == [held]
    assert rows_of(origin.read(held)) == rows_of(slots(held))
    assert set(ArchiveOrigin(storage).ranges()) == {held, Range("other", -1, 3)}


def test_segments_are_joined_and_cut_as_one_range(storage: Storage) -> None:
    stored(storage, Range("q", -31, -1), Range("q", -1, 29), Range("q", 29, 31), Range("r", 4, 5))
    origin = ArchiveOrigin(storage)
    assert origin.ranges() == [Range("q", -31, 31), Range("r", 4, 5)]
    wanted = Range("q", -5, 30)
    part = Part(0, (wanted, Range("r", 4, 5)))
    reader = origin.reader(part.ranges)
    assert [manifest.after for manifest in reader.manifests] == [-31, -1, 29, 4]
    assert rows_of(reader.read(wanted)) == rows_of(slots(wanted))
    assert [len(origin.reader([Range("q", 29, 30)]).manifests), len(origin.reader([Range("q", 28, 29)]).manifests)] == [
        1,
        1,
    ]


def test_times_and_seqs_narrow_what_is_read_down_to_row_groups(storage: Storage) -> None:
    stored(storage, Range("q", -1, 29), Range("q", 29, 59))
    since, until = (START + 12_000) / 1000, (START + 31_000) / 1000
    assert ArchiveOrigin(storage, Selection(since=since)).ranges() == [Range("q", 9, 59)]
    assert ArchiveOrigin(storage, Selection(until=until)).ranges() == [Range("q", -1, 39)]
    assert ArchiveOrigin(storage, Selection(since=since, until=until)).ranges() == [Range("q", 9, 39)]
    assert ArchiveOrigin(storage, Selection(since=since, from_seq=20, to_seq=44)).ranges() == [Range("q", 19, 44)]
    assert ArchiveOrigin(storage, Selection(since=until + 3_600)).ranges() == []


def test_a_segment_without_a_manifest_is_not_there(storage: Storage) -> None:
    manifests = stored(storage, Range("q", -1, 9), Range("q", 9, 19))
    storage.delete(manifests[1].name)
    assert ArchiveOrigin(storage).ranges() == [Range("q", -1, 9)]


def test_what_is_not_in_the_archive_is_named(storage: Storage) -> None:
    with pytest.raises(InvalidInput, match="there is no archive at"):
        ArchiveOrigin(storage).ranges()
    stored(storage, Range("q", -1, 9))
    with pytest.raises(InvalidInput, match="queue 'p' has no segment in the archive"):
        ArchiveOrigin(storage, Selection(queues=("q", "p"))).ranges()


@pytest.mark.parametrize(
    ("other", "problem"),
    [(Range("q", 8, 19), "they overlap"), (Range("q", 10, 19), "a segment between them is missing")],
)
def test_segments_that_do_not_follow_each_other_are_named(storage: Storage, other: Range, problem: str) -> None:
    _, second = stored(storage, Range("q", -1, 9), other)
    with pytest.raises(ArchiveDamaged, match=problem) as caught:
        ArchiveOrigin(storage).ranges()
    assert caught.value.file == storage.address(second.name)


def changed(**fields: Any) -> Callable[[bytes], bytes]:
    return lambda content: json.dumps(json.loads(content) | fields).encode()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda content: content[:40], "no manifest of a segment"),
        (lambda _: b"[]", "no manifest of a segment"),
        (changed(version=2), "version 2, and this reads 1"),
        (changed(format="other"), "its format is 'other'"),
        (changed(through=18), "do not agree"),
        (changed(rows=21), "do not agree"),
        (changed(queue="r"), "do not agree"),
        (changed(after="0"), "no manifest of a segment"),
        (changed(row_groups=[]), "do not agree"),
        (changed(row_groups=None), "no manifest of a segment"),
        (changed(more=1), "no manifest of a segment"),
    ],
)
def test_a_manifest_that_is_damaged_is_named(storage: Storage, change: Callable[[bytes], bytes], problem: str) -> None:
    (manifest,) = stored(storage, Range("q", -1, 19))
    storage.write(manifest.name, change(storage.read(manifest.name)))
    with pytest.raises(ArchiveDamaged, match=problem) as caught:
        ArchiveOrigin(storage).ranges()
    assert caught.value.file == storage.address(manifest.name)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data[:-1], "bytes, and its manifest says"),
        (lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:], "its sha256 is not that of its manifest"),
        (lambda _: made(Range("r", -1, 19))[1], "its sha256 is not|bytes, and its manifest says"),
    ],
)
def test_a_segment_that_is_damaged_is_named(storage: Storage, change: Callable[[bytes], bytes], problem: str) -> None:
    (manifest,) = stored(storage, Range("q", -1, 19))
    storage.write(manifest.data_name, change(storage.read(manifest.data_name)))
    with pytest.raises(ArchiveDamaged, match=problem) as caught:
        rows_of(ArchiveOrigin(storage).read(manifest.range))
    assert caught.value.file == storage.address(manifest.data_name)


@pytest.mark.parametrize("wanted", [Range("q", -1, 19), Range("q", 12, 15)])
def test_another_queues_segment_in_its_place_is_named_though_read_in_part(storage: Storage, wanted: Range) -> None:
    (manifest,) = stored(storage, Range("q", -1, 19))
    _, data = made(Range("r", -1, 19))
    storage.write(manifest.data_name, data)
    storage.write(manifest.name, changed(size=len(data))(manifest.text()))
    with pytest.raises(ArchiveDamaged, match=r"sha256|its queue, columns or row groups are not those"):
        rows_of(ArchiveOrigin(storage).read(wanted))


def test_a_segment_that_is_missing_is_named_before_anything_is_read(storage: Storage) -> None:
    manifest, _ = stored(storage, Range("q", -1, 19), Range("q", 19, 29))
    origin = ArchiveOrigin(storage)
    reader = origin.reader([Range("q", -1, 29)])
    storage.delete(manifest.data_name)
    with pytest.raises(ArchiveDamaged, match="it is missing, and its manifest is there"):
        ArchiveOrigin(storage).ranges()
    with pytest.raises(ArchiveDamaged, match="it is missing, and its manifest is there"):
        rows_of(reader.read(Range("q", -1, 29)))


def test_a_damaged_segment_read_in_part_is_named(storage: Storage) -> None:
    (manifest,) = stored(storage, Range("q", -1, 59))
    data = storage.read(manifest.data_name)
    storage.write(manifest.data_name, data[:-200] + b"\0" * 200)
    with pytest.raises(ArchiveDamaged, match="no readable Parquet file"):
        rows_of(ArchiveOrigin(storage).read(Range("q", 5, 6)))


def test_no_bit_can_change_in_what_is_read_in_part_without_a_word(storage: Storage) -> None:
    (manifest,) = stored(storage, Range("q", -1, 59))
    wanted = Range("q", 21, 24)
    data, sound = storage.read(manifest.data_name), rows_of(slots(wanted))
    named = 0
    for place in range(4, len(data), 7):
        storage.write(manifest.data_name, data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :])
        try:
            assert rows_of(read_segment(storage, manifest, wanted)) == sound, place
        except ArchiveDamaged:
            named += 1
    assert named > 20


class Flaky:
    """A file whose reads fail as those of an S3 client do, from one of them on."""

    def __init__(self, file: Any, sound: int) -> None:
        self._file, self._sound = file, sound

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int | None) -> bytes:
        self._sound -= 1
        if self._sound < 0:
            raise OSError("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 28, Timeout was reached")
        content: bytes = self._file.read(size)
        return content


@pytest.mark.parametrize("sound", [0, 1])
def test_a_read_that_fails_is_no_damage(storage: Storage, monkeypatch: pytest.MonkeyPatch, sound: int) -> None:
    (manifest,) = stored(storage, Range("q", -1, 59))
    opened = Storage.open

    def flaky(self: Storage, name: str) -> Readable:
        return Readable(Flaky(opened(self, name), sound), partial(S3Objects("bucket", "", None, "x")._named, name))

    monkeypatch.setattr(Storage, "open", flaky)
    for read in (
        lambda: check_bytes(storage, manifest),
        lambda: rows_of(read_segment(storage, manifest, Range("q", 21, 24))),
    ):
        with pytest.raises(StoreUnavailable, match=r"bucket/queues/.*Timeout was reached"):
            read()


def test_a_column_whose_name_is_no_text_any_more_is_named(storage: Storage) -> None:
    (manifest,) = stored(storage, Range("q", -1, 59))
    data = storage.read(manifest.data_name)
    storage.write(manifest.data_name, data.replace(b"arrived_at", b"arrived_a\xf4"))
    with pytest.raises(ArchiveDamaged, match="no readable Parquet file"):
        rows_of(read_segment(storage, manifest, Range("q", 21, 24)))


def test_segments_without_checksums_can_be_read_in_part(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(segments.WRITING, "write_page_checksum")
    (manifest,) = stored(storage, Range("q", -1, 59))
    wanted = Range("q", 21, 24)
    assert rows_of(read_segment(storage, manifest, wanted)) == rows_of(slots(wanted))
