from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from stream_sort.errors import AccessDenied, SettingsError, StoreMisconfigured, StoreUnavailable
from stream_sort.replay.files import local_files
from stream_sort.replay.files.storage import Storage
from tests.unit.storage_claims import StorageClaims

if TYPE_CHECKING:
    from pathlib import Path


class TestLocalFiles(StorageClaims):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return Storage(str(tmp_path / "not yet there"))


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://localhost{}"])
def test_a_directory_has_several_addresses(tmp_path: Path, form: str) -> None:
    Storage(form.format(tmp_path)).write("a", b".")
    assert (tmp_path / "a").read_bytes() == b"."


def test_spaces_in_a_file_address_are_escaped(tmp_path: Path) -> None:
    Storage(f"file://{tmp_path}/a%20b").write("c", b".")
    assert (tmp_path / "a b" / "c").exists()


def test_a_writer_that_died_leaves_no_name_behind(tmp_path: Path) -> None:
    (tmp_path / ".unfinished-1").write_bytes(b"half")
    assert Storage(str(tmp_path)).list() == []


def test_nothing_is_left_beside_what_was_written(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.write("a", b".")
    storage.put_if_absent("a", b"!")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    "uri", ["", "  ", "gs://bucket/x", "s3://", "s3://a", "s3:///x", "file://host/x", "s3://a b/c", None]
)
def test_an_address_that_cannot_be_used_is_refused(uri: str) -> None:
    with pytest.raises(SettingsError, match="address"):
        Storage(uri)


def test_folders_that_were_made_for_a_file_are_on_disk_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    sync = local_files._sync

    def noted(folder: Path) -> None:
        synced.append(folder)
        sync(folder)

    monkeypatch.setattr(local_files, "_sync", noted)
    storage = Storage(str(tmp_path / "archive"))
    storage.write("queues/q-q/1.json", b".")
    top = tmp_path / "archive"
    assert set(synced) == {tmp_path, top, top / "queues", top / "queues/q-q"}
    synced.clear()
    storage.write("queues/q-q/2.json", b".")
    assert synced == [top / "queues/q-q"]


def test_an_address_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b".")
    with pytest.raises(StoreMisconfigured, match="is the address a directory"):
        Storage(str(tmp_path / "file")).write("a", b".")


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT])
def test_a_disk_that_fails_for_now_is_not_called_a_wrong_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, "so it is")

    monkeypatch.setattr("pathlib.Path.read_bytes", fail)
    with pytest.raises(StoreUnavailable, match="so it is"):
        Storage(str(tmp_path)).read("a")


def test_a_directory_that_may_not_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Whoever runs the suite as root may write anywhere.
    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(AccessDenied, match="access denied"):
        Storage(str(tmp_path / "x")).write("a", b".")
