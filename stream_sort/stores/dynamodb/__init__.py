"""The tables in DynamoDB, through the low-level boto3 client."""

from __future__ import annotations

from stream_sort.stores.dynamodb.connection import connect

__all__ = ["connect"]
