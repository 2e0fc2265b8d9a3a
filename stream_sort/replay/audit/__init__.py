"""The proof per queue that nothing is missing or doubled."""
