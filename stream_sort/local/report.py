"""What is said of a local stack: how it is, what is in it, and what to type next."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from stream_sort.errors import LocalStackFailed
from stream_sort.formats.terminal_text import shell_word
from stream_sort.local.readable_logs import STEPS
from stream_sort.local.tools import ACCESS_KEY, REGION
from stream_sort.program import program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stream_sort.local.stack import LocalStack

URL = "Url"
# Outputs that are commands; and the one URL that is not a queue's.
COMMANDS = {"TryIt", "StartArchive"}
API = "ApiUrl"


def refuse_dead_stack() -> None:
    """Raise LocalStackFailed if there is a local stack, and its AWS died or does not answer."""
    from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

    try:
        stack = LocalStack.known()
    except LocalStackFailed:
        # Not in a checkout: then there is none.
        return
    if stack is not None:
        raise LocalStackFailed(how_it_is(stack, None))


def await_local_stack(report: Callable[[str], None]) -> None:
    """Wait for the usual local stack, should it run and be busy."""
    from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

    with suppress(LocalStackFailed):
        if (stack := LocalStack.known()) is not None:
            stack.await_answer(report)


def how_it_is(stack: LocalStack, home: Path | None) -> str:
    """Say what became of a stack that does not answer, and what to do."""
    from stream_sort.local.stack import BUSY_TEXT  # noqa: PLC0415  # as all imports of commands

    again = f"start it again with: {local_command('up', home)}"
    death = stack.death
    if death is None and stack.is_busy:
        return f"{BUSY_TEXT}; wait, and do this again"
    if death is None:
        return f"the local stack in {stack.home} runs but does not answer; {again}"
    logged = f"What it logged: {local_command('logs', home)} (look first: up begins with empty logs)"
    return f"the local stack in {stack.home} {death}, and what was stored is gone. {logged}; {again}"


def local_command(word: str, home: Path | None) -> str:
    """Return a command of `local` as the user can type it, for the stack of this folder."""
    from stream_sort.local.stack import default_home  # noqa: PLC0415  # as all imports of commands

    with suppress(LocalStackFailed):
        # Outside of a checkout there is no folder that goes without saying.
        home = None if home is None or home.absolute() == default_home() else home
    where = [] if home is None else ["--home", shell_word(str(home))]
    return " ".join([program(), "local", word, *where])


def describe(stack: LocalStack) -> dict[str, Any]:
    """Return all there is to know, as JSON can hold it."""
    return {
        "running": True,
        "endpoint": stack.endpoint,
        "region": REGION,
        "access_key": ACCESS_KEY,
        "secret_key": ACCESS_KEY,
        "home": str(stack.home),
        "handler": stack.record.handler,
        "parameters": stack.parameters,
        "outputs": stack.outputs,
        "messages": _messages(stack),
        "workers": {step: stack.workers(step) for step in STEPS},
    }


def summary(stack: LocalStack, command: Callable[[str], str]) -> str:
    """Describe what runs, what is in it, and what to try first; `command` returns how a command of `local` is typed."""
    now = describe(stack)
    named = {
        name: value
        for name, value in stack.outputs.items()
        if name == API or not (name.endswith(URL) or name in COMMANDS)
    }
    width = max(map(len, [*named, *now["messages"]]))
    lines = [f"the local stack is up: {stack.endpoint}  (files and logs: {stack.home})", ""]
    lines += [f"  {name:{width}}  {value}" for name, value in named.items()]
    lines += [f"  {name:{width}}  {count:,} messages" for name, count in now["messages"].items()]
    if now["parameters"]:
        told = " ".join(f"{name}={value}" for name, value in now["parameters"].items())
        lines += [f"  {'parameters':{width}}  {told}"]
    if stack.record.handler:
        lines += [f"  {'handler':{width}}  {stack.record.handler}"]
    return "\n".join([*lines, "", *_first_commands(stack, command)])


def _first_commands(stack: LocalStack, command: Callable[[str], str]) -> list[str]:
    example = _example(stack)
    aws = f"AWS_ENDPOINT_URL={stack.endpoint} AWS_DEFAULT_REGION={REGION}"
    aws += f" AWS_ACCESS_KEY_ID={ACCESS_KEY} AWS_SECRET_ACCESS_KEY={ACCESS_KEY}"
    lines = [
        "Try it: two messages, out of order, and what process does with them (Ctrl-C ends it)",
        f"  {command('invoke')} enqueue '{example}'",
        f"  {command('logs')} process --follow",
        "With the AWS CLI, version 2",
        f"  export {aws}",
        f"  {stack.outputs['TryIt']}",
    ]
    if "SinkQueueUrl" in stack.outputs:
        lines.append(f"  aws sqs receive-message --queue-url {stack.outputs['SinkQueueUrl']}")
    if API in stack.outputs:
        lines += ["The HTTP API, which finds its stack by the host", f"  {_api_call(stack, example)}"]
    return [*lines, "When done", f"  {command('down')}"]


def _example(stack: LocalStack) -> str:
    """Return two messages, out of order, as this stack wants them."""
    given = stack.record.parameters
    queue, seq, first = given.get("QueueKey", "queue"), given.get("SeqKey", "seq"), int(given.get("FirstSeq", "0"))
    return json.dumps([{queue: "ada", seq: first + 1}, {queue: "ada", seq: first}])


def _api_call(stack: LocalStack, example: str) -> str:
    host = f"{stack.outputs[API].split('//')[1].split('.')[0]}.execute-api.localhost"
    signed = f"curl --aws-sigv4 aws:amz:{REGION}:execute-api --user {ACCESS_KEY}:{ACCESS_KEY} -H 'Host: {host}'"
    return f"{signed} -d '{example}' {stack.endpoint}/messages"


def _messages(stack: LocalStack) -> dict[str, int]:
    """Count the messages that wait in each queue, by its name in the template."""
    urls = {name.removesuffix(URL): value for name, value in stack.outputs.items() if name.endswith(f"{URL}")}
    wanted = "ApproximateNumberOfMessages"
    with closing(stack.client("sqs")) as client:
        return {
            name: int(client.get_queue_attributes(QueueUrl=url, AttributeNames=[wanted])["Attributes"][wanted])
            for name, url in urls.items()
            if name != API.removesuffix(URL)
        }
