"""What has not changed is not built again."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from stream_sort.local.builds import LEFT_OUT, fingerprint
from stream_sort.local.project import project_root

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("template.yaml", "Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(project_root() / name, tmp_path)
    for name in ("functions/process/app.py", "stream_sort/__init__.py", "stream_sort/cli/local.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(project_root() / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    "name", ["template.yaml", "Makefile", "uv.lock", "functions/process/app.py", "stream_sort/__init__.py"]
)
def test_a_changed_source_is_noticed(root: Path, name: str) -> None:
    before = fingerprint(root)
    assert fingerprint(root) == before
    with (root / name).open("a") as file:
        file.write("\n")
    assert fingerprint(root) != before


def test_a_new_and_a_renamed_source_are_noticed(root: Path) -> None:
    prints = [fingerprint(root)]
    (root / "functions/process/mine.py").write_text("")
    prints.append(fingerprint(root))
    (root / "functions/process/mine.py").rename(root / "functions/process/yours.py")
    prints.append(fingerprint(root))
    assert len(set(prints)) == 3


def test_what_is_not_in_the_layer_is_nobodys_business(root: Path) -> None:
    before = fingerprint(root)
    (root / "stream_sort/cli/local.py").write_text("")
    (root / "functions/process/__pycache__").mkdir()
    (root / "functions/process/__pycache__/app.pyc").write_text("")
    assert fingerprint(root) == before
    found = re.search(r"python/stream_sort/\{(.+)\}", (root / "Makefile").read_text())
    assert found is not None
    assert {f"stream_sort/{name}" for name in found[1].split(",")} == set(LEFT_OUT)
