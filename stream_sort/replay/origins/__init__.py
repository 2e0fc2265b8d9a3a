"""Where history is read from: the live tables, an archive or an export; ranges of slots, in order."""
