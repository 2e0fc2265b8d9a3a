"""What every storage keeps, wherever its files are; each function is one claim, run on each of them."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from stream_sort.errors import FileMissing, InvalidInput

if TYPE_CHECKING:
    from stream_sort.replay.files.storage import Storage


class StorageClaims:
    """Subclasses give a `storage` fixture."""

    def test_what_was_written_is_read_whole_and_at_any_place(self, storage: Storage) -> None:
        storage.write("a/b.bin", b"0123456789")
        assert storage.read("a/b.bin") == b"0123456789"
        assert storage.size("a/b.bin") == 10
        with storage.open("a/b.bin") as file:
            file.seek(4)
            assert file.read(3) == b"456"

    def test_a_second_write_replaces_the_first(self, storage: Storage) -> None:
        storage.write("a", b"long text")
        storage.write("a", b"new")
        assert storage.read("a") == b"new"

    def test_a_name_that_is_taken_is_not_put_again(self, storage: Storage) -> None:
        assert storage.put_if_absent("x/plan.json", b"first")
        assert not storage.put_if_absent("x/plan.json", b"second")
        assert storage.read("x/plan.json") == b"first"

    def test_of_many_that_put_at_once_one_wins(self, storage: Storage) -> None:
        contents = [f"writer {number}".encode() for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda content: storage.put_if_absent("race", content), contents))
        assert sum(won) == 1
        assert storage.read("race") == contents[won.index(True)]

    def test_names_are_listed_sorted_by_prefix_at_any_depth(self, storage: Storage) -> None:
        names = ["b/2", "a/x/1", "a/1", "ab", "a/-1"]
        for name in names:
            storage.write(name, b".")
        assert storage.list() == sorted(names)
        assert storage.list("a/") == ["a/-1", "a/1", "a/x/1"]
        assert storage.list("a") == ["a/-1", "a/1", "a/x/1", "ab"]
        assert storage.list("c/") == []

    def test_what_is_not_there_is_named(self, storage: Storage) -> None:
        assert not storage.exists("gone")
        for use in (storage.read, storage.open):
            with pytest.raises(FileMissing, match="gone"):
                use("gone")

    def test_a_file_is_deleted_once_and_again(self, storage: Storage) -> None:
        storage.write("a", b".")
        storage.delete("a")
        storage.delete("a")
        assert storage.list() == []

    def test_it_goes_to_other_processes(self, storage: Storage) -> None:
        storage.write("a", b"here")
        assert pickle.loads(pickle.dumps(storage)).read("a") == b"here"

    @pytest.mark.parametrize("name", ["", "/a", "a//b", "../a", "a/..", ".", "a/"])
    def test_a_name_that_leaves_the_address_is_refused(self, storage: Storage, name: str) -> None:
        with pytest.raises(InvalidInput, match="file name"):
            storage.write(name, b".")

    def test_some_name_tells_whether_anything_is_there(self, storage: Storage) -> None:
        assert storage.some_name() is None
        storage.write("a/b", b".")
        assert storage.some_name() == "a/b"
