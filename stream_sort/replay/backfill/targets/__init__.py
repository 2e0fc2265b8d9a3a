"""Where a backfill goes: files, one a part; or a sink that each queue is delivered to in order."""
