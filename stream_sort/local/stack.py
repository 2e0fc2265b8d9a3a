"""The serverless app on this machine: the very template that goes into AWS, deployed to a local one."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from stream_sort.errors import InvalidInput, LocalStackFailed, PortTaken
from stream_sort.local.deployment import deploy, swap_handler, usual_parameters
from stream_sort.local.detached import Death, DetachedMiniStack
from stream_sort.local.function_logs import function_logs
from stream_sort.local.handlers import HandlerFile, try_handler
from stream_sort.local.ministack import MiniStack
from stream_sort.local.parameters import check_parameters
from stream_sort.local.project import is_from_wheel, project_root
from stream_sort.local.readable_logs import STEPS
from stream_sort.local.record import FOLDER, StackRecord, is_locked, locked
from stream_sort.local.settlement import allow, deployed_parameters
from stream_sort.local.tools import choose_port, worker_pids
from stream_sort.model.alike import question

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from stream_sort.local.readable_logs import LogLine

# A swap of the handler keeps MiniStack from answering for 2 to 20 s on a busy machine.
BUSY = 30.0
# Who ends it for that it does not answer ends all that is stored.
HANGS = 60.0
BUSY_TEXT = "the local stack is busy: another command changes it, or the watcher swaps the handler"
SILENT_TEXT = "the local stack runs but does not answer yet"


class LocalStack:
    """A deployed local stack. `up` gives one that stays until `down`, `leashed` one that ends with this process.

    Roles are enforced: a function may do here what it may do in AWS, and no more.
    """

    def __init__(self, aws: MiniStack, home: Path, record: StackRecord) -> None:
        self._aws = aws
        self._record = record
        self.home = home

    @classmethod
    def up(
        cls,
        *,
        home: Path | None = None,
        port: int | None = None,
        handler: str | None = None,
        parameters: Mapping[str, str] | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Start the local AWS unless it runs, then build and deploy.

        `handler` is `my_handler.py:handle`, `parameters` are the template's. What a stack that runs, or died, was given
        stays unless it is given anew; an empty value is the default. If it fails, what it started goes again;
        what was asked for before is kept.
        """
        folder = _folder(home)
        wanted = _wanted(handler, parameters)
        with locked(folder):
            before = StackRecord.load(folder)
            wanted = asked_over(before, wanted)
            aws = DetachedMiniStack(folder, before.port if before else 0, report=report)
            _wait_or_end(aws, report)
            if aws.is_up:
                if port not in {None, aws.port}:
                    raise LocalStackFailed(f"the local stack runs on port {aws.port}; take it down to move it")
                return cls(aws, folder, deploy(aws, folder, wanted, report, before=before).save(folder))
            if wanted.handler:
                # That of a stack that died; its file may be gone.
                HandlerFile.parse(wanted.handler)
            try:
                _start(aws, port)
                return cls(aws, folder, deploy(aws, folder, wanted, report).save(folder))
            except BaseException:
                # What a stack was asked for before stays, as after a crash.
                _remove(aws) if before is None else aws.give_up()
                raise

    @classmethod
    def leashed(
        cls,
        *,
        handler: str | None = None,
        parameters: Mapping[str, str] | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Deploy one on a free port, in a temporary folder; all of it goes when this process ends, however it ends."""
        wanted = _wanted(handler, parameters)
        aws = MiniStack(report=report, enforce_roles=True).start()
        try:
            return cls(aws, aws.state_dir, deploy(aws, aws.state_dir, asked_over(None, wanted), report))
        except BaseException:
            aws.stop()
            raise

    @classmethod
    def known(cls, home: Path | None = None) -> Self | None:
        """Return the stack of a folder, up or dead; None if there is none, or it was taken down."""
        folder = _folder(home)
        record = StackRecord.load(folder)
        return None if record is None else cls(DetachedMiniStack(folder, record.port), folder, record)

    @classmethod
    def find(cls, home: Path | None = None) -> Self | None:
        """Return the stack that runs in a folder; None if none does."""
        stack = cls.known(home)
        return stack if stack is not None and stack.is_up else None

    @classmethod
    def reset(cls, home: Path | None = None, report: Callable[[str], None] = lambda _: None) -> Self:
        """Throw away all that is in it, and deploy it anew as it was asked for last."""
        folder = _folder(home)
        last = StackRecord.load(folder)
        if last is None:
            raise LocalStackFailed(f"there is no local stack in {folder} to reset; bring one up")
        cls.take_down(folder, report)
        return cls.up(home=folder, port=last.port, handler=last.handler, parameters=last.parameters, report=report)

    @staticmethod
    def take_down(home: Path | None = None, report: Callable[[str], None] = lambda _: None) -> bool:
        """End whatever is left of a stack in a folder, and remove the folder; return True if there was one."""
        folder = _folder(home)
        if not folder.exists():
            return False
        with locked(folder):
            _remove(DetachedMiniStack(folder, 0, report=report))
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.down()

    @property
    def is_up(self) -> bool:
        """Return True if its AWS answers."""
        return self._aws.is_up

    @property
    def is_busy(self) -> bool:
        """Return True if another command, or a watcher, changes it now: it may not answer until that is done."""
        return is_locked(self.home)

    def await_answer(self, report: Callable[[str], None]) -> bool:
        """Return True as soon as its AWS answers; False if it does not run, or does not answer for a while."""
        if self.is_up:
            return True
        if not isinstance(self._aws, DetachedMiniStack) or self.death is not None:
            return False
        report(f"{BUSY_TEXT if self.is_busy else SILENT_TEXT}; waiting up to {BUSY:.0f} s for it")
        return self._aws.await_answer(BUSY)

    @property
    def death(self) -> Death | None:
        """Return when and how its AWS ended, if nobody asked for it."""
        return self._aws.death if isinstance(self._aws, DetachedMiniStack) else None

    def swap_handler(self) -> bool:
        """Put in the handler's file if it has changed; return True if it had. The old one stays if it raises."""
        with locked(self.home):
            swapped = swap_handler(self._aws, self.home, StackRecord.load(self.home) or self._record)
            self._record, before = swapped.save(self.home), self._record
        return swapped.digest != before.digest

    @property
    def endpoint(self) -> str:
        """Return the URL of all services."""
        return self._aws.url

    @property
    def outputs(self) -> dict[str, str]:
        """Return the outputs of the template: names of tables and functions, URLs of queues."""
        return self._record.outputs

    @property
    def parameters(self) -> dict[str, str]:
        """Return the parameters that it has now, read from it: those that were asked for or are not the usual ones."""
        usual, asked = usual_parameters(), self._record.parameters
        # The name of a handler's module says less than its file.
        handler = {"Handler"} if self._record.handler else set()
        return {
            name: value
            for name, value in deployed_parameters(self._aws).items()
            if name not in handler and (name in asked or value != usual.get(name))
        }

    @property
    def record(self) -> StackRecord:
        """Return what was asked for, and what came of it."""
        return self._record

    def client(self, service: str, **options: Any) -> Any:
        """Return a new boto3 client of one of its services; close it when done."""
        return self._aws.client(service, **options)

    def function(self, step: str) -> str:
        """Return the name of a step's function."""
        if step not in STEPS:
            meant = question(step, STEPS) or f"; there are {', '.join(STEPS)}"
            raise InvalidInput(f"there is no function {step!r}{meant}")
        return self.outputs[f"{step.title()}Function"]

    def invoke(self, step: str, event: object) -> Any:
        """Run a function and give back what it answers; LocalStackFailed if it raised."""
        name = self.function(step)
        with closing(self.client("lambda")) as client:
            answer = client.invoke(FunctionName=name, Payload=json.dumps(event))
            said = json.load(answer["Payload"])
        if "FunctionError" in answer:
            raise LocalStackFailed(f"{step} failed: {said.get('errorType')}: {said.get('errorMessage')}")
        return said

    def logs(self, step: str, since: int = 0) -> list[LogLine]:
        """Return what a function wrote, and why it did not start, oldest first; `since` is in milliseconds.

        Also of a local AWS that died: up to about a second before it did.
        """
        return function_logs(self._aws, step, self.function(step), since)

    def workers(self, step: str) -> list[int]:
        """Return the processes that run a function now; to kill one is what AWS does when it ends a sandbox."""
        return worker_pids(str(self._aws.state_dir), self.function(step))

    def allow(self, step: str, *actions: str, resource: str = "*") -> None:
        """Let a function do more than the template says, until its role is deployed again."""
        allow(self._aws, step, list(actions), resource)

    def down(self) -> None:
        """End it with all its processes and remove its files; harmless when it is down."""
        if not isinstance(self._aws, DetachedMiniStack):
            self._aws.stop()
        elif self.home.exists():
            with locked(self.home):
                _remove(self._aws)


def default_home() -> Path:
    """Return the folder of the usual local stack: in the checkout, or in the user's home if the app is a wheel's."""
    return (Path.home() if is_from_wheel() else project_root()) / FOLDER


def _folder(home: Path | None) -> Path:
    return home.absolute() if home else default_home()


def _wanted(handler: str | None, parameters: Mapping[str, str] | None) -> StackRecord:
    """Return what is asked for; refuse what cannot work before anything is started."""
    check_parameters(parameters or {})
    file = HandlerFile.parse(handler) if handler else None
    if file is not None:
        try_handler(file)
    return StackRecord(0, dict(parameters or {}), str(file) if file else None)


def asked_over(before: StackRecord | None, wanted: StackRecord) -> StackRecord:
    """Merge what is asked for with what was asked for before; an empty value is the default, a sink ends a handler."""
    earlier, handler = ({}, None) if before is None else (before.parameters, before.handler)
    if wanted.parameters.keys() & {"Sink", "Handler"}:
        handler = None
    asked = {**earlier, **wanted.parameters}
    kept = {name: value for name, value in asked.items() if value}
    return replace(wanted, parameters=kept, handler=wanted.handler or handler)


def _start(aws: DetachedMiniStack, wanted: int | None) -> None:
    """Start it on the wanted port, else on a free one: the one it had, the usual one, or any.

    Somebody else may take a free one while it starts; then it tries the next.
    """
    last = aws.port
    while True:
        aws.port = choose_port(wanted, last)
        try:
            aws.start()
        except PortTaken:
            if wanted is not None:
                raise
        else:
            return


def _wait_or_end(aws: DetachedMiniStack, report: Callable[[str], None]) -> None:
    """Let one that runs and does not answer have its time; then end it."""
    if aws.is_up or not aws.is_running or aws.death is not None:
        return
    report(f"{SILENT_TEXT}; waiting up to {HANGS:.0f} s before it is ended")
    if not aws.await_answer(HANGS) and aws.is_running:
        report(f"it hangs, and is ended: all messages in it are gone; its log stays: {aws.end_hung()}")


def _remove(aws: DetachedMiniStack) -> None:
    aws.stop()
    shutil.rmtree(aws.home, ignore_errors=True)
