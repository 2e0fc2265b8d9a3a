"""A message comes in: check it, store it, first write wins."""
