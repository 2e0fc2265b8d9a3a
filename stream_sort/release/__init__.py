"""A queue's cursor moves over the contiguous run: the heart."""
