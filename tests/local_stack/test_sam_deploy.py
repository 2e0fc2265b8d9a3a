"""`sam deploy`, as `make deploy` runs it: the local stack goes without it, AWS does not."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from stream_sort.local.builds import PYTHON, SAM_VERSION, Sam, build, fingerprint
from stream_sort.local.project import project_root
from stream_sort.local.settlement import CAPABILITIES
from stream_sort.local.tools import REGION, environment, tool

if TYPE_CHECKING:
    from pathlib import Path

    from stream_sort.local.ministack import MiniStack

pytestmark = pytest.mark.ministack

STACK = "deployed-by-sam"
OUTPUTS = {
    "ItemsTable",
    "CursorTable",
    "ControlTable",
    "EnqueueFunction",
    "EnqueueQueueUrl",
    "ProcessFunction",
    "SinkQueueUrl",
}


def test_sam_deploys_what_it_built_with_nothing_but_a_name_and_a_region(ministack: MiniStack, tmp_path: Path) -> None:
    shutil.copy(project_root() / "samconfig.toml", tmp_path)
    sam = Sam(project_root(), tmp_path / "build", tmp_path / "sam.log")
    build(sam, fingerprint(project_root()), lambda _: None)
    command = [
        *tool(f"aws-sam-cli=={SAM_VERSION}", "sam"),
        *("deploy", "--template-file", str(sam.build_dir / "template.yaml")),
        *("--stack-name", STACK, "--region", REGION, "--no-confirm-changeset", "--no-progressbar"),
        *("--parameter-overrides", f"PythonRuntime=python{PYTHON}"),
        *("--config-file", str(tmp_path / "samconfig.toml")),
    ]
    variables = environment() | {"AWS_ENDPOINT_URL": ministack.url, "SAM_CLI_TELEMETRY": "0", "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with closing(ministack.client("cloudformation")) as client:
        (stack,) = client.describe_stacks(StackName=STACK)["Stacks"]
    assert (stack["StackStatus"], {*stack["Capabilities"]} <= {*CAPABILITIES}) == ("CREATE_COMPLETE", True)
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
    assert outputs.keys() >= OUTPUTS
    with closing(ministack.client("dynamodb")) as dynamodb:
        assert dynamodb.describe_table(TableName=outputs["ItemsTable"])["Table"]["TableStatus"] == "ACTIVE"
