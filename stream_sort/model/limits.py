"""What fits into one DynamoDB transaction."""

from __future__ import annotations

# 100 actions, of which the checkpoint and a dead letter take two.
MAX_EFFECTS = 98
MAX_ITEM_BYTES = 400 * 1024
MAX_TRANSACTION_BYTES = 4 * 1024 * 1024
# Of a partition key; a sort key may have half of that.
MAX_KEY_BYTES = 2048
MAX_EXPRESSION_BYTES = 4 * 1024
