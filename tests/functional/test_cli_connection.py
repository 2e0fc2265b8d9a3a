from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort import SettingsError, StreamSorter
from stream_sort.aws import accounts
from stream_sort.aws.accounts import AwsPlace
from stream_sort.aws.stacks import Stack
from stream_sort.cli.connection import connect
from stream_sort.cli.output import jsonable, shell_word, visible
from stream_sort.cli.tables import fitted
from stream_sort.insight.sources import OwnConsumer
from stream_sort.local import project
from stream_sort.model.gap_policy import GapPolicy
from tests.functional.cloudformation import an_account
from tests.functional.command_line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variables, and no local stack of whoever runs the tests."""
    for name in ("ITEMS_TABLE", "CURSOR_TABLE", "CONTROL_TABLE", "QUEUE_KEY", "SEQ_KEY", "CONSUMER"):
        monkeypatch.delenv(f"STREAM_SORT_{name}", raising=False)
    monkeypatch.setattr(accounts, "_local", lambda: None)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")


@pytest.fixture
def endpoint() -> Iterator[str]:
    with an_account() as account:
        yield account.endpoint


def test_a_stack_names_tables_keys_and_functions(endpoint: str) -> None:
    found = connect(stack="mine", endpoint_url=endpoint)
    settings = found.settings
    assert (settings.items_table, settings.cursor_table, found.control_table) == ("its", "crs", "ctl")
    assert (settings.queue_key, settings.seq_key, settings.first_seq) == ("lane", "n", 5)
    assert found.output("ProcessFunction") == "prc"
    with pytest.raises(SettingsError, match="SinkQueueUrl is not known"):
        found.output("SinkQueueUrl")
    found.close()


def test_an_option_goes_before_a_variable_and_that_before_the_stack(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAM_SORT_ITEMS_TABLE", "variable")
    monkeypatch.setenv("STREAM_SORT_CURSOR_TABLE", "variable")
    found = connect(stack="mine", endpoint_url=endpoint, items_table="option")
    assert (found.settings.items_table, found.settings.cursor_table, found.control) == ("option", "variable", "ctl")
    found.close()


def test_a_stack_that_is_not_there_is_one_line_with_the_region(endpoint: str) -> None:
    told = Line().error("status", "--stack", "other", "--endpoint-url", endpoint, code=2)
    assert "--stack other: there is no stack of that name in eu-west-1" in told
    assert "eu-west-1" in told


def test_nothing_named_is_one_line_with_the_next_step() -> None:
    told = Line().error("status", code=2)
    assert "--stack NAME" in told
    assert "stream-sort local up" in told
    without = Line().error("status", "--region", "eu-west-1", code=2)
    assert without.endswith(", or, without --region, start a local stack: stream-sort local up")


class UpAt:
    """A local stack that is up, as far as one who looks for it is told."""

    home = "/some/where"


@pytest.mark.parametrize(
    ("words", "variables", "leave_out"),
    [
        (["--region", "eu-west-1"], [], "--region"),
        (["--region", "eu-west-1", "--endpoint-url", "http://127.0.0.1:9"], [], "--region and --endpoint-url"),
        (["--cursor-table", "Cursor"], [], "--cursor-table"),
        ([], ["STREAM_SORT_CURSOR_TABLE"], "STREAM_SORT_CURSOR_TABLE"),
    ],
)
def test_who_means_aws_while_a_local_stack_is_up_is_not_told_to_start_one(
    words: list[str], variables: list[str], leave_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "_local", UpAt)
    for name in variables:
        monkeypatch.setenv(name, "Cursor")
    told = Line().error("status", *words, code=2)
    assert told.startswith("which tables? Give --stack NAME, or --items-table (or STREAM_SORT_ITEMS_TABLE)")
    assert told.endswith(f"; a local stack is up in /some/where: to mean that one, leave out {leave_out}")
    assert "local up" not in told


def test_outside_of_a_checkout_nobody_is_sent_to_a_command_that_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "__file__", str(tmp_path / "site-packages" / "stream_sort" / "local" / "project.py"))
    monkeypatch.chdir(tmp_path)
    told = Line().error("status", code=2)
    assert told.endswith("or start a local stack in a checkout of stream_sort: stream-sort local up")
    assert (
        Line()
        .error("local", "status", "--home", str(tmp_path / "none"))
        .endswith(f"start it in a checkout of stream_sort with: stream-sort local up --home {tmp_path}/none")
    )


def test_a_profile_that_is_not_there_is_one_line() -> None:
    words = ("--items-table", "Items", "--cursor-table", "Cursor", "--profile", "nobody")
    assert "--profile nobody" in Line().error("status", *words, code=2)


def test_a_table_alone_is_not_enough() -> None:
    assert "--cursor-table" in Line().error("status", "--items-table", "Items", code=2)


TABLES = {"--items-table": "Items", "--cursor-table": "Cursor"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"--cursor-table": "Items"}, "both 'Items'"),
        ({"--items-table": "bad name!"}, "bad name!"),
        ({"--region": "not a region"}, "not a region"),
        ({"--endpoint-url": "nonsense"}, "Invalid endpoint: nonsense"),
        ({"--endpoint-url": "nonsense", "--stack": "mine"}, "Invalid endpoint: nonsense; check --endpoint-url"),
        ({"--region": "not a region", "--stack": "mine"}, "check --region and --profile"),
    ],
)
def test_what_cannot_be_used_is_exit_code_2(given: dict[str, str], told: str) -> None:
    words = [word for pair in (TABLES | given).items() for word in pair]
    assert told in Line().error("status", *words, code=2)


@pytest.mark.parametrize("words", [[], ["--stack", "mine"]])
def test_no_region_is_told_with_the_option_that_gives_it(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    tables = [word for pair in TABLES.items() for word in pair]
    assert Line().error("status", *tables, *words, code=2) == "no AWS region is set; give --region, or set AWS_REGION"


def test_who_names_a_stack_while_a_local_one_is_up_is_told_how_to_mean_that(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(accounts, "_local", object)
    told = Line().error("status", "--stack", "stream-sort", code=2)
    assert told.startswith("no AWS region is set; give --region, or set AWS_REGION")
    assert told.endswith("(a local stack is up: to mean that one, leave out --stack)")


def test_no_credentials_are_told_with_the_way_to_give_them(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name, value in {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    told = Line().error("status", "--stack", "mine", "--endpoint-url", endpoint)
    assert told == "--stack mine: no AWS credentials are found; give --profile, or set AWS_PROFILE, or log in"


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (["skip", "ada", "2-3"], "stream-sort skip ada 2-3 --stack mine"),
        (["skip", "ada", "-5--4"], "stream-sort skip ada --stack mine -- -5--4"),
        (["explain", "--all"], "stream-sort explain --stack mine -- --all"),
    ],
)
def test_what_looks_like_an_option_stands_behind_all_options(words: list[str], typed: str) -> None:
    found = replace(connect(items_table="Items", cursor_table="Cursor"), flags=("--stack", "mine"))
    assert found.command(*words) == typed
    assert found.command("dead", "redrive", "-q", options=["--consumer", "c"]) == (
        "stream-sort dead redrive --consumer c --stack mine -- -q"
    )
    found.close()


def test_the_control_table_is_asked_for_where_it_is_needed() -> None:
    found = connect(items_table="Items", cursor_table="Cursor")
    with pytest.raises(SettingsError, match="--control-table"):
        _ = found.control_table
    assert isinstance(found.sorter, StreamSorter)
    found.close()
    assert found.place.made == []


def test_an_endpoint_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAM_SORT_DEADLINE", "0.1")
    words = ("--items-table", "Items", "--cursor-table", "Cursor", "--endpoint-url", "http://127.0.0.1:9")
    assert "127.0.0.1:9" in Line().error("status", *words)
    assert Line().error("status", "--endpoint-url", "http://127.0.0.1:9", "--stack", "mine")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢", "plain é 漢"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\nb\r\t", r"a\nb\r\t"),
        ("\x9b\x7f", r"\x9b\x7f"),
        ("\u202e\u2066\u2028", r"\u202e\u2066\u2028"),
    ],
)
def test_control_characters_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["ada", "my queue", "it's", "\x1b[2J'\\", "$(rm)", "", "é"])
def test_a_word_comes_through_a_shell_as_it_is(text: str) -> None:
    done = subprocess.run(["bash", "-c", f"printf %s {shell_word(text)}"], capture_output=True, check=True)
    assert done.stdout.decode() == text


def test_markup_in_a_cell_is_text() -> None:
    from rich.console import Console  # noqa: PLC0415  # loaded by tables only

    screen = Console(width=80, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115, PTH123
    with screen.file:
        screen.print(fitted(("[red]a",), [["[bold]b[/]"], [1234]], screen))
    told = screen.export_text()
    assert "[red]a" in told
    assert "[bold]b[/]" in told
    assert "1,234" in told


def test_values_of_ours_are_json() -> None:
    assert jsonable({"a": [range(2, 4)], "p": GapPolicy(5)}) == {
        "a": [{"from": 2, "through": 3}],
        "p": "skip after 5 seconds",
    }


def test_the_consumer_of_a_stack_that_never_began_is_looked_for_in_its_logs() -> None:
    found = replace(
        connect(items_table="Items", cursor_table="Cursor", control_table="Control"),
        stack=Stack("orders", {"ControlTable": "Control"}, {"Consumer": "billing"}),
        flags=("--stack", "orders"),
    )
    assert found.own == OwnConsumer("billing", "earliest", "stream-sort doctor --stack orders")
    on_this_machine = Stack("the local stack", {"ControlTable": "Control"})
    assert replace(found, stack=on_this_machine, place=AwsPlace(key="test")).own == OwnConsumer(
        "process", "earliest", "stream-sort local logs process"
    )
    # What was there before it began is not for one that starts with what comes.
    assert replace(found, stack=Stack("orders", found.stack.outputs, {"Start": "latest"})).own is None
    assert replace(found, stack=Stack()).own is None
    assert replace(found, control="Other").own is None
