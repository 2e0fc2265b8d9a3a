"""Where the app's sources are: a checkout, or what the wheel brought."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stream_sort.local import project
from stream_sort.local.builds import fingerprint
from stream_sort.local.project import is_from_wheel, project_root, source_folder
from stream_sort.local.stack import default_home

if TYPE_CHECKING:
    from pathlib import Path

INSTALLED = ("__init__.py", "local/project.py", "model/__init__.py", "model/__pycache__/__init__.pyc")
APP = ("template.yaml", "Makefile", "pyproject.toml", "uv.lock", "functions/process/app.py")


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that came with a wheel; no checkout is in reach."""
    package = tmp_path / "site-packages" / "stream_sort"
    write(package, *INSTALLED, *(f"app/{name}" for name in APP))
    monkeypatch.setattr(project, "__file__", str(package / "local" / "project.py"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return package


def test_without_a_checkout_the_app_is_that_of_the_wheel_and_its_stack_is_the_users(
    package: Path, tmp_path: Path
) -> None:
    assert (project_root(), is_from_wheel()) == (package / "app", True)
    assert default_home() == tmp_path / "home" / ".stream-sort"


def test_a_checkout_that_is_the_working_directory_goes_before_the_wheel(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert package.exists()
    write(tmp_path / "checkout", *APP)
    monkeypatch.chdir(tmp_path / "checkout")
    assert (project_root(), is_from_wheel()) == (tmp_path / "checkout", False)
    assert default_home() == tmp_path / "checkout" / ".stream-sort"
    assert source_folder(tmp_path / "home") == tmp_path / "checkout"


def test_sam_builds_from_a_copy_of_the_wheels_files_that_is_laid_out_as_a_checkout(
    package: Path, tmp_path: Path
) -> None:
    folder = source_folder(tmp_path / "stack")
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {
        *APP,
        ".tools/bin/uv",
        "stream_sort/__init__.py",
        "stream_sort/local/project.py",
        "stream_sort/model/__init__.py",
    }
    # The Makefile takes the uv that is there.
    assert os.access(folder / ".tools/bin/uv", os.X_OK)
    assert not (package / ".tools").exists()


def test_what_is_copied_again_is_the_same_unless_the_wheel_has_changed(package: Path, tmp_path: Path) -> None:
    first = fingerprint(source_folder(tmp_path / "stack"))
    assert fingerprint(source_folder(tmp_path / "stack")) == first
    (package / "app" / "functions" / "process" / "app.py").write_text("another")
    assert fingerprint(source_folder(tmp_path / "stack")) != first
