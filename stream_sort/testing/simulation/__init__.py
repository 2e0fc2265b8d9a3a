"""The simulator: production services on memory tables, with a scheduler between every two store calls."""
