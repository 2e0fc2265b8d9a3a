"""Put the template, the layer and the functions on a local AWS that runs; only what differs from what is there."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from stream_sort.local.builds import PYTHON, Sam, build, fingerprint, zipped
from stream_sort.local.handlers import HandlerFile, ProcessCode, put_code
from stream_sort.local.parameters import known_parameters
from stream_sort.local.project import source_folder
from stream_sort.local.settlement import create_or_update, deployed_outputs, make_amends, settle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stream_sort.local.ministack import MiniStack
    from stream_sort.local.record import StackRecord

BUCKET = "stream-sort-artifacts"
# Where the template that was built names a folder beside it.
CODE = re.compile(r"^( *(?:CodeUri|ContentUri): )(\w+)$", re.MULTILINE)
# Six minutes, right in AWS, would be a long time to wait for what a killed function left.
LOCAL_PARAMETERS = {"VisibilityTimeout": "15", "RetryVisibilityTimeout": "15", "PythonRuntime": f"python{PYTHON}"}


def deploy(
    aws: MiniStack, home: Path, record: StackRecord, report: Callable[[str], None], *, before: StackRecord | None = None
) -> StackRecord:
    """Bring the stack to what the record says, perhaps from what `before` says; return what came of it.

    It is built and deployed only if a source has changed: handlers and parameters are changed without that.
    """
    root = source_folder(home)
    sources = fingerprint(root)
    file = HandlerFile.parse(record.handler) if record.handler else None
    digest = file.digest if file else ""
    parameters = usual_parameters() | record.parameters | ({"Handler": file.reference} if file else {})
    code = ProcessCode.of(home)
    if before is None or before.sources != sources or not code.is_built:
        sam = Sam(root, home / "build", home / "sam.log")
        build(sam, sources, report)
        code.put_handler(file)
        report("deploying template.yaml")
        create_or_update(aws, upload(aws, sam.build_dir), parameters)
    is_other = before is not None and (before.sources, before.digest) != (sources, digest)
    # Tried before anything is changed, and put in when nothing can be refused any more.
    packed = code.packed(file) if is_other else b""
    deployed = settle(aws, parameters, report)
    outputs = deployed_outputs(aws)
    if is_other:
        report("putting in the handler" if file else "putting in the code of process")
        put_code(aws, outputs["ProcessFunction"], packed)
    make_amends(aws, outputs, deployed)
    return replace(record, port=aws.port, deployed=deployed, outputs=outputs, sources=sources, digest=digest)


def swap_handler(aws: MiniStack, home: Path, record: StackRecord) -> StackRecord:
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


def upload(aws: MiniStack, build: Path) -> str:
    """Put what was built into a bucket, as `sam deploy` does; return the URL of the template that names it there."""
    with closing(aws.client("s3")) as s3:
        s3.create_bucket(Bucket=BUCKET)

        def put(name: str, content: bytes) -> str:
            key = f"{sha256(content).hexdigest()}-{name}"
            s3.put_object(Bucket=BUCKET, Key=key, Body=content)
            return key

        def put_folder(found: re.Match[str]) -> str:
            return f"{found[1]}s3://{BUCKET}/{put(f'{found[2]}.zip', zipped(build / found[2]))}"

        template = CODE.sub(put_folder, (build / "template.yaml").read_text(encoding="utf-8"))
        return f"{aws.url}/{BUCKET}/{put('template.yaml', template.encode())}"
