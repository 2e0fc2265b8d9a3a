"""Put the template, the layer and the functions on a local AWS that runs."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.local.amends import make_amends
from stream_sort.local.handler_trial import try_handler
from stream_sort.local.project import HandlerFile, project_root
from stream_sort.local.sam import STACK, Sam

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stream_sort.local.ministack import MiniStack
    from stream_sort.local.record import Record

BUCKET = "stream-sort-artifacts"
# Six minutes, right in AWS, would be a long time to wait for what a killed function left.
LOCAL_PARAMETERS = {"VisibilityTimeout": "15", "RetryVisibilityTimeout": "15"}


def deploy(
    aws: MiniStack, home: Path, record: Record, report: Callable[[str], None], *, before: Record | None = None
) -> Record:
    """Build and deploy as the record says, perhaps over what `before` says; answers what came of it."""
    sam = Sam(project_root(), home / "build", aws.url, home / "sam.log")
    report("building the layer and the functions (sam build)")
    sam.build()
    parameters = {**_back_to_default(aws, before), **LOCAL_PARAMETERS, **record.parameters}
    if record.handler:
        file = HandlerFile.parse(record.handler)
        file.copy_to(sam.build_dir / "ProcessFunction")
        # Now with what the function will have, and no more.
        try_handler(file, bare=[sam.build_dir / "ProcessFunction", sam.build_dir / "StreamSortLayer" / "python"])
        parameters["Handler"] = file.reference
    report("deploying template.yaml (sam deploy)")
    with closing(aws.client("s3")) as s3:
        # Not sam's --resolve-s3: it makes the bucket by a stack of its own, and waits long for that.
        s3.create_bucket(Bucket=BUCKET)
    sam.deploy(BUCKET, parameters)
    make_amends(aws)
    return replace(record, port=aws.port, deployed=parameters, outputs=_read_outputs(aws))


def _back_to_default(aws: MiniStack, before: Record | None) -> dict[str, str]:
    """The defaults of parameters that an earlier deployment set; left out, they would stay as they are."""
    if before is None or not before.deployed:
        return {}
    with closing(aws.client("cloudformation")) as client:
        known = client.get_template_summary(StackName=STACK)["Parameters"]
    return {one["ParameterKey"]: one["DefaultValue"] for one in known if one["ParameterKey"] in before.deployed}


def _read_outputs(aws: MiniStack) -> dict[str, str]:
    with closing(aws.client("cloudformation")) as client:
        (stack,) = client.describe_stacks(StackName=STACK)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
