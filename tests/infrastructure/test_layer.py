"""The layer that sam builds: small, pure, with bytecode, and all that the functions import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
LIMIT = 60 * 1024 * 1024


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layer")
    subprocess.run(
        ["make", "build-StreamSortLayer", f"ARTIFACTS_DIR={folder}", f"LAMBDA_PYTHON={PYTHON}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=300,
    )
    return folder / "python"


def test_the_layer_is_small(layer: Path) -> None:
    size = sum(file.stat().st_size for file in layer.rglob("*") if file.is_file())
    print(f"the layer has {size / 1024 / 1024:.1f} MB")
    assert size < LIMIT


def test_every_module_of_the_layer_has_bytecode_that_needs_no_check(layer: Path) -> None:
    tag = sys.implementation.cache_tag
    for module in layer.rglob("*.py"):
        code = module.parent / "__pycache__" / f"{module.stem}.{tag}.pyc"
        flags = int.from_bytes(code.read_bytes()[4:8], "little")
        assert flags == 0b01, f"{module} would be compared with its source"


def test_the_layer_runs_on_any_processor_and_holds_no_tests(layer: Path) -> None:
    assert [str(file) for file in layer.rglob("*.so")] == []
    assert [str(folder) for folder in layer.rglob("tests")] == []
    assert [str(folder) for folder in layer.glob("*.dist-info")] == []


def test_the_layer_holds_nothing_that_never_runs_in_lambda(layer: Path) -> None:
    assert {"model", "aws_lambda"} <= {folder.name for folder in (layer / "stream_sort").iterdir()}
    for name in (
        "stream_sort/cli",
        "stream_sort/local",
        "stream_sort/replay",
        "stream_sort/testing",
        "pyspark",
        "py4j",
        "pyarrow",
        "typer",
    ):
        assert not (layer / name).exists(), name


def test_everything_that_the_functions_import_comes_from_the_layer(layer: Path) -> None:
    wanted = ["boto3", "aws_lambda_powertools", "aws_xray_sdk.core", "pynamodb", "stream_sort.aws_lambda.enqueue"]
    script = f"import sys; sys.path.insert(0, {str(layer)!r}); import " + ", ".join(wanted)
    script += "; [print(sys.modules[name].__file__) for name in ('boto3', 'stream_sort', 'pynamodb')]"
    environment = {"PATH": os.environ["PATH"], "AWS_DEFAULT_REGION": "eu-west-1"}
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", script], check=True, capture_output=True, text=True, env=environment, cwd="/"
    )
    assert all(line.startswith(str(layer)) for line in done.stdout.splitlines())
