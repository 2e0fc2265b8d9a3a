"""Are the tables there, and are they the right ones: status, keys, indexes, streams."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.insight.checkup.aws import update
from stream_sort.insight.checkup.finding import Finding, fail, ok, warn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from stream_sort.insight.checkup.aws import Aws

AREA, STREAMS = "tables", "streams"
# CloudFormation does not see that the stream is another one.
FOLLOW = "then look again: it is a new stream, which its event source mappings do not follow automatically"


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it should be (a CreateTable request), and as it is (DescribeTable); `found` is None if it is not.

    `optional` are indexes that tables of an earlier version lack: they work without, and slower.
    """

    kind: str
    wanted: Mapping[str, Any]
    found: Mapping[str, Any] | None
    recovery: str = "not known"
    optional: Collection[str] = ()

    @property
    def name(self) -> str:
        """Return what it is called."""
        return str(self.wanted["TableName"])

    @property
    def label(self) -> str:
        """Return what it is called in a sentence."""
        return f"{self.kind} table {self.name!r}"

    @property
    def stream_arn(self) -> str | None:
        """Return the stream that it writes to now."""
        found = self.found or {}
        return found.get("LatestStreamArn") if found.get("StreamSpecification", {}).get("StreamEnabled") else None


def check_table(table: Table, aws: Aws) -> Iterator[Finding]:
    """Check that a table is as it should be."""
    if table.found is None:
        where = aws.where()
        yield fail(
            AREA,
            f"there is no {table.label} in {where}",
            # With point-in-time recovery, the last state of a deleted table is kept for 35 days.
            "name the right one; a deleted one can be restored from what this lists: "
            + aws.command("dynamodb", "list-backups", "--table-name", table.name, "--backup-type", "SYSTEM"),
        )
        return
    wrong = [
        *_status(table, table.found),
        *_keys(table, table.found),
        *_indexes(table, table.found, aws),
        *_recovery(table, aws),
    ]
    yield from wrong or [ok(AREA, f"{table.label}: {_facts(table, table.found)}")]


def check_stream(table: Table, view: str | None, aws: Aws) -> Iterator[Finding]:
    """Check that a table's stream carries `view`, which its readers need: empty is anything, None needs no stream."""
    if table.found is None or view is None:
        return
    stream = table.found.get("StreamSpecification", {})
    there = stream.get("StreamViewType")
    if stream.get("StreamEnabled") and (there == view or not view):
        yield ok(STREAMS, f"{table.label} has a stream of {there}")
        return
    enable = aws.command(
        *("dynamodb", "update-table", "--table-name", table.name),
        *("--stream-specification", f"StreamEnabled=true,StreamViewType={view or 'KEYS_ONLY'}"),
    )
    if not stream.get("StreamEnabled"):
        yield fail(STREAMS, f"{table.label} has no stream: it wakes nobody", f"{enable}; {FOLLOW}")
        return
    disable = aws.command(
        *("dynamodb", "update-table", "--table-name", table.name, "--stream-specification", "StreamEnabled=false")
    )
    yield fail(STREAMS, f"{table.label} has a stream of {there}, not of {view}", f"{disable}; {enable}; {FOLLOW}")


def _status(table: Table, found: Mapping[str, Any]) -> Iterator[Finding]:
    status = found.get("TableStatus", "ACTIVE")
    if status in {"CREATING", "UPDATING"}:
        yield warn(AREA, f"{table.label} is {status}", "wait, and look again")
    elif status != "ACTIVE":
        yield fail(AREA, f"{table.label} is {status}", "it cannot be used: see it in the console of DynamoDB")


def _keys(table: Table, found: Mapping[str, Any]) -> Iterator[Finding]:
    there, wanted = _key_text(found, found["KeySchema"]), _key_text(table.wanted, table.wanted["KeySchema"])
    if there != wanted:
        yield fail(
            AREA,
            f"{table.label} has the keys {there}, not {wanted}",
            "give --queue-key and --seq-key as they are, or name the right table; keys cannot be changed",
        )


def _indexes(table: Table, found: Mapping[str, Any], aws: Aws) -> Iterator[Finding]:
    there = {index["IndexName"]: index for index in found.get("GlobalSecondaryIndexes", ())}
    for index in table.wanted.get("GlobalSecondaryIndexes", ()):
        name = index["IndexName"]
        if name not in there:
            yield _lacking(table, found, index, aws)
        elif _key_text(found, there[name]["KeySchema"]) != _key_text(table.wanted, index["KeySchema"]):
            keys = _key_text(found, there[name]["KeySchema"])
            yield fail(
                AREA,
                f"{table.label} has an index {name!r} with other keys: {keys}",
                _index_anew(table, found, index, aws),
            )
        elif there[name].get("IndexStatus", "ACTIVE") != "ACTIVE":
            yield warn(AREA, f"index {name!r} of {table.label} is {there[name]['IndexStatus']}", "wait, and look again")


def _lacking(table: Table, found: Mapping[str, Any], index: Mapping[str, Any], aws: Aws) -> Finding:
    """Name an index that is not there: one that an earlier version did not have comes with an update of the stack.

    Added by hand it would be in the way of that update, which adds it, too.
    """
    told, again = f"{table.label} lacks its index {index['IndexName']!r}", _index_again(table, found, index, aws)
    if index["IndexName"] not in table.optional:
        return fail(AREA, f"{told}: the sweep finds nothing by it", again)
    if table.name in aws.outputs.values():
        again = f"{update(aws)}; only if the stack is of this version already, and somebody deleted the index: {again}"
    return warn(AREA, f"{told}: the sweep looks through all queues instead, in turns", again)


def _index_again(table: Table, found: Mapping[str, Any], index: Mapping[str, Any], aws: Aws) -> str:
    """Return the command that adds an index; a table that is provisioned gives it as many units as it has itself."""
    units = found.get("ProvisionedThroughput", {})
    kept = {name: int(units[name]) for name in ("ReadCapacityUnits", "WriteCapacityUnits") if units.get(name)}
    made = dict(index) if _is_on_demand(found) else {**index, "ProvisionedThroughput": kept}
    # No attribute that is the key of nothing: DynamoDB refuses it.
    keys = {one["AttributeName"] for one in (*found["AttributeDefinitions"], *index["KeySchema"])}
    defined = [one for one in table.wanted["AttributeDefinitions"] if one["AttributeName"] in keys]
    return aws.command(
        *("dynamodb", "update-table", "--table-name", table.name),
        *("--attribute-definitions", json.dumps(defined)),
        *("--global-secondary-index-updates", json.dumps([{"Create": made}])),
    )


def _index_anew(table: Table, found: Mapping[str, Any], index: Mapping[str, Any], aws: Aws) -> str:
    away = json.dumps([{"Delete": {"IndexName": index["IndexName"]}}])
    delete = aws.command(
        *("dynamodb", "update-table", "--table-name", table.name, "--global-secondary-index-updates", away)
    )
    return f"{delete}; once it is gone: {_index_again(table, found, index, aws)}"


def _recovery(table: Table, aws: Aws) -> Iterator[Finding]:
    """Check a backup that the template has on; whose tables are no stack's may have it as they like."""
    if table.recovery != "off" or table.name not in aws.outputs.values():
        return
    enable = aws.command(
        *("dynamodb", "update-continuous-backups", "--table-name", table.name),
        *("--point-in-time-recovery-specification", "PointInTimeRecoveryEnabled=true"),
    )
    yield warn(AREA, f"{table.label} has point-in-time recovery off, which the template has on", enable)


def _is_on_demand(found: Mapping[str, Any]) -> bool:
    return bool(found.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST")


def _key_text(table: Mapping[str, Any], schema: list[dict[str, str]]) -> str:
    types = {one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]}
    ordered = sorted(schema, key=lambda key: key["KeyType"])
    return ", ".join(f"{key['AttributeName']} ({types.get(key['AttributeName'], '?')})" for key in ordered)


def _facts(table: Table, found: Mapping[str, Any]) -> str:
    billed = "on demand" if _is_on_demand(found) else "provisioned"
    return f"{_key_text(found, found['KeySchema'])}; {billed}; point-in-time recovery {table.recovery}"
