"""The code of the process function: what was built, with the user's handler beside it; put there without sam."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from stream_sort.errors import LocalStackFailed
from stream_sort.local.handler_trial import try_handler
from stream_sort.local.zips import zipped

if TYPE_CHECKING:
    from stream_sort.local.ministack import MiniStack
    from stream_sort.local.project import HandlerFile


@dataclass(frozen=True, slots=True)
class ProcessCode:
    """The folders of one build: `built` is what is deployed, `plain` the same before a handler was put in."""

    built: Path
    plain: Path
    layer: Path

    @classmethod
    def of(cls, home: Path) -> ProcessCode:
        """The code in the folder of a local stack."""
        build = home / "build"
        return cls(build / "ProcessFunction", home / "process", build / "StreamSortLayer" / "python")

    @property
    def is_built(self) -> bool:
        """Return True if a handler can be put in without a build."""
        return self.plain.is_dir() and self.layer.is_dir()

    def put_handler(self, file: HandlerFile | None) -> None:
        """Put the handler into what was just built; InvalidInput if the function could not import it."""
        shutil.rmtree(self.plain, ignore_errors=True)
        shutil.copytree(self.built, self.plain)
        if file is not None:
            file.copy_to(self.built)
            # Now with what the function will have, and no more.
            try_handler(file, bare=[self.built, self.layer])

    def packed(self, file: HandlerFile | None) -> bytes:
        """Return the code with this handler as a zip file; InvalidInput if the function could not import it."""
        with TemporaryDirectory(prefix="stream-sort-process-") as name:
            folder = Path(name) / "function"
            shutil.copytree(self.plain, folder)
            if file is not None:
                file.copy_to(folder)
                try_handler(file, bare=[folder, self.layer])
            return zipped(folder)


def put_code(aws: MiniStack, function: str, packed: bytes) -> None:
    """Give a deployed function this code, and wait until it has it."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  # as MiniStack.client

    often = {"Delay": 0.2, "MaxAttempts": 300}
    with closing(aws.client("lambda")) as client:
        try:
            client.update_function_code(FunctionName=function, ZipFile=packed)
            client.get_waiter("function_updated_v2").wait(FunctionName=function, WaiterConfig=often)
        except (BotoCoreError, ClientError) as error:
            raise LocalStackFailed(f"the local AWS did not take the code of process: {error}") from error
