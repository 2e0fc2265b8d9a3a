"""`stream-sort demo`: messages shuffled through a local AWS, shown live, and a verdict that was checked."""
