"""What a message is called at a sink: group, partition key, deduplication id. Pure; knows no client."""

from __future__ import annotations

import re
import string
from hashlib import sha256
from typing import Any

FIFO_ALPHABET = frozenset(string.ascii_letters + string.digits + string.punctuation)
FIFO_GROUP_LENGTH = 128
PARTITION_KEY_LENGTH = 256
HASHED = re.compile(r"sha256:[0-9a-f]{64}")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def group_id(queue: str) -> str:
    """Return the FIFO message group of a queue: its name where AWS takes it, else `sha256:` and the name's hash.

    AWS takes 1 to 128 ASCII letters, digits and punctuation. A queue that is itself named like a hash is
    hashed too, so two queues never share a group.
    """
    return _name(queue, fits=len(queue) <= FIFO_GROUP_LENGTH and FIFO_ALPHABET.issuperset(queue))


def partition_key(queue: str) -> str:
    """Return the Kinesis partition key of a queue: its name up to 256 characters, else hashed as in `group_id`."""
    return _name(queue, fits=len(queue.encode("utf-16-le")) <= 2 * PARTITION_KEY_LENGTH)


def deduplication_id(sender: str, queue: str, seq: int) -> str:
    """Return the same id for the same message of the same sender, always: AWS drops a repeat for 5 minutes.

    The sender is part of it: what two consumers or two tables send to one target are two messages, and so is what is
    sent once more on purpose, under another name.
    """
    # The length keeps apart a sender that ends like a seq or a queue from one that does not.
    return sha256(f"{len(sender)}:{sender}:{seq}:{queue}".encode()).hexdigest()


def fifo_labels(sender: str, queue: str, seq: int) -> dict[str, Any]:
    """Return what SQS and SNS want to know of a message besides its text; the attributes are for filters and people."""
    return {
        "MessageGroupId": group_id(queue),
        "MessageDeduplicationId": deduplication_id(sender, queue, seq),
        "MessageAttributes": {
            "queue": {"DataType": "String", "StringValue": xml_safe(queue)},
            "seq": {"DataType": "Number", "StringValue": str(seq)},
        },
    }


def attributes_size(labels: dict[str, Any]) -> int:
    """Return how many bytes the attributes take of a message's size: names, types and values count."""
    return sum(
        len(name) + len(attribute["DataType"]) + len(attribute["StringValue"].encode())
        for name, attribute in labels["MessageAttributes"].items()
    )


def xml_safe(text: str) -> str:
    r"""Return the text with the few characters that SQS refuses, such as U+FFFF, as JSON writes them: `\uffff`.

    Inside JSON they can only stand in strings, so the document stays the same.
    """
    return NOT_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _name(queue: str, *, fits: bool) -> str:
    if fits and not HASHED.fullmatch(queue):
        return queue
    return f"sha256:{sha256(queue.encode()).hexdigest()}"
