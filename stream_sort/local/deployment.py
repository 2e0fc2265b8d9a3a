"""Put the template, the layer and the functions on a local AWS that runs; only what differs from what is there."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.local.amends import make_amends
from stream_sort.local.builds import build
from stream_sort.local.parameters import known_parameters
from stream_sort.local.process_code import ProcessCode, put_code
from stream_sort.local.project import HandlerFile, project_root
from stream_sort.local.sam import PYTHON, STACK, Sam
from stream_sort.local.settlement import settle
from stream_sort.local.sources import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from stream_sort.local.ministack import MiniStack
    from stream_sort.local.record import Record

BUCKET = "stream-sort-artifacts"
# Six minutes, right in AWS, would be a long time to wait for what a killed function left.
LOCAL_PARAMETERS = {"VisibilityTimeout": "15", "RetryVisibilityTimeout": "15", "PythonRuntime": f"python{PYTHON}"}


def deploy(
    aws: MiniStack, home: Path, record: Record, report: Callable[[str], None], *, before: Record | None = None
) -> Record:
    """Bring the stack to what the record says, perhaps from what `before` says; return what came of it.

    Sam builds and deploys only if a source has changed: handlers and parameters are changed without it.
    """
    sources = fingerprint(project_root())
    file = HandlerFile.parse(record.handler) if record.handler else None
    digest = file.digest if file else ""
    parameters = usual_parameters() | record.parameters | ({"Handler": file.reference} if file else {})
    code = ProcessCode.of(home)
    if before is None or before.sources != sources or not code.is_built:
        sam = Sam(project_root(), home / "build", aws.url, home / "sam.log")
        build(sam, sources, report)
        code.put_handler(file)
        _deploy(sam, aws, parameters, report)
    # After sam, too: what was put in without it may have hidden from sam that the code is another one.
    is_other = before is not None and (before.sources, before.digest) != (sources, digest)
    # Tried before anything is changed, and put in when nothing can be refused any more.
    packed = code.packed(file) if is_other else b""
    deployed = settle(aws, parameters, report)
    outputs = _read_outputs(aws)
    if is_other:
        report("putting in the handler" if file else "putting in the code of process")
        put_code(aws, outputs["ProcessFunction"], packed)
    make_amends(aws)
    return replace(record, port=aws.port, deployed=deployed, outputs=outputs, sources=sources, digest=digest)


def swap_handler(aws: MiniStack, home: Path, record: Record) -> Record:
    """Put in the handler's file as it is now; return the record of that. The same one if it has not changed."""
    file = HandlerFile.parse(record.handler or "")
    digest = file.digest
    if digest == record.digest:
        return record
    put_code(aws, record.outputs["ProcessFunction"], ProcessCode.of(home).packed(file))
    return replace(record, digest=digest)


def usual_parameters() -> dict[str, str]:
    """Return what a local stack has if nothing else is asked for: the template's defaults, some of them shorter."""
    return {name: parameter.default for name, parameter in known_parameters().items()} | LOCAL_PARAMETERS


def _deploy(sam: Sam, aws: MiniStack, parameters: Mapping[str, str], report: Callable[[str], None]) -> None:
    report("deploying template.yaml (sam deploy)")
    with closing(aws.client("s3")) as s3:
        # Not sam's --resolve-s3: it makes the bucket by a stack of its own, and waits long for that.
        s3.create_bucket(Bucket=BUCKET)
    sam.deploy(BUCKET, parameters)


def _read_outputs(aws: MiniStack) -> dict[str, str]:
    with closing(aws.client("cloudformation")) as client:
        (stack,) = client.describe_stacks(StackName=STACK)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
