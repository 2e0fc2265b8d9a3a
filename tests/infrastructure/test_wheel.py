"""The wheel is all that a user needs: the library, the command line and, for the local stack, the app's sources."""

from __future__ import annotations

import re
from zipfile import ZipFile

import pytest

from stream_sort import __version__
from tests.docs.pages import ROOT, page
from tests.installed import Installed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed.make(tmp_path_factory.mktemp("installed"))


def test_sdist_and_wheel_are_built_with_the_version_of_the_package(installed: Installed) -> None:
    built = {path.name for path in (installed.folder / "dist").iterdir() if path.suffix in {".whl", ".gz"}}
    assert built == {f"stream_sort-{__version__}.tar.gz", f"stream_sort-{__version__}-py3-none-any.whl"}


def test_the_first_example_of_the_readme_runs(installed: Installed) -> None:
    example, *_ = page("README.md").blocks("python")
    assert "StreamSorter.in_memory()" in example
    where = "import stream_sort; print(stream_sort.__file__)"
    assert installed.run("python", "-c", f"{example}\n{where}").strip() == str(installed.package / "__init__.py")


def test_the_command_line_helps(installed: Installed) -> None:
    said = installed.run("stream-sort", "--help")
    assert {"put", "status", "explain", "local", "demo"} <= set(re.findall(r"\b[a-z]+\b", said))


def test_the_wheel_holds_the_package_and_the_sources_of_the_app_and_no_tests(installed: Installed) -> None:
    with ZipFile(installed.wheel) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    modules = [path for path in (ROOT / "stream_sort").rglob("*") if path.suffix in {".py", ".css", ".typed"}]
    assert {str(path.relative_to(ROOT)) for path in modules} <= set(names)
    sources = {"template.yaml", "Makefile", "pyproject.toml", "uv.lock"}
    sources |= {f"functions/{step}/app.py" for step in ("enqueue", "advance", "process", "sweep")}
    app = {name.removeprefix("stream_sort/app/") for name in names if name.startswith("stream_sort/app/")}
    assert app == sources
    assert all(name.startswith("stream_sort/") for name in names)
    for one in sources:
        assert (installed.package / "app" / one).read_bytes() == (ROOT / one).read_bytes()
