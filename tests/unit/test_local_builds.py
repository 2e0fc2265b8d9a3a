"""What was built of the same sources is not built again, and a build that did not end is none."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from stream_sort.local.builds import KEPT, build, fingerprint

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class FakeSam:
    """Writes the number of the build, or is interrupted in the middle of it."""

    root: Path
    build_dir: Path
    builds: list[Path] = field(default_factory=list)
    meanwhile: threading.Event | None = None
    interrupted: bool = False
    changed: bool = False

    def build(self) -> None:
        self.builds.append(self.build_dir)
        self.build_dir.mkdir()
        (self.build_dir / "half").write_text("")
        if self.meanwhile:
            assert self.meanwhile.wait(20)
        if self.interrupted:
            raise KeyboardInterrupt
        if self.changed:
            write(self, "changed")
        (self.build_dir / "template.yaml").write_text(str(len(self.builds)))


def write(sam: FakeSam, source: str) -> None:
    (sam.root / "template.yaml").write_text(source)


def built(sam: FakeSam) -> list[str]:
    """What is told; the build must be whole."""
    told: list[str] = []
    build(sam, fingerprint(sam.root), told.append)  # type: ignore[arg-type]
    assert (sam.build_dir / "template.yaml").is_file()
    return told


@pytest.fixture
def sam(tmp_path: Path) -> FakeSam:
    sam = FakeSam(tmp_path, tmp_path / "home" / "build")
    write(sam, "")
    return sam


def test_the_same_sources_are_built_once(sam: FakeSam) -> None:
    assert built(sam) == ["building the layer and the functions (sam build)"]
    (sam.build_dir / "handler.py").write_text("")
    other = FakeSam(sam.root, sam.root / "other", sam.builds)
    assert built(other) == ["taking the layer and the functions as they were built before"]
    assert len(sam.builds) == 1
    assert not (other.build_dir / "handler.py").exists()


def test_changed_sources_are_built_and_only_the_last_build_is_kept(sam: FakeSam) -> None:
    built(sam)
    write(sam, "another")
    built(sam)
    assert (sam.build_dir / "template.yaml").read_text() == "2"
    assert [path.name for path in (sam.root / KEPT).iterdir()] == [fingerprint(sam.root)]
    write(sam, "")
    built(sam)
    assert (sam.build_dir / "template.yaml").read_text() == "3"


def test_a_build_that_was_interrupted_is_made_again(sam: FakeSam) -> None:
    with pytest.raises(KeyboardInterrupt):
        built(FakeSam(sam.root, sam.build_dir, interrupted=True))
    assert not sam.build_dir.exists()
    built(sam)
    assert len(sam.builds) == 1


def test_what_was_built_while_a_source_changed_is_not_taken_for_that_of_either(sam: FakeSam) -> None:
    built(FakeSam(sam.root, sam.build_dir, sam.builds, changed=True))
    for source in ("", "changed"):
        write(sam, source)
        built(sam)
    assert len(sam.builds) == 3


def test_who_comes_while_another_one_builds_waits_for_it_and_gets_the_same(sam: FakeSam) -> None:
    released = threading.Event()
    first = FakeSam(sam.root, sam.root / "first", sam.builds, released)
    building = threading.Thread(target=built, args=(first,))
    building.start()
    while not sam.builds:
        assert building.is_alive()
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        released.set()

    build(sam, fingerprint(sam.root), tell)  # type: ignore[arg-type]
    building.join()
    assert told[0] == "waiting for another command, which is building the same"
    assert told[1:] == ["taking the layer and the functions as they were built before"]
    assert len(sam.builds) == 1
