"""The `stream-sort` command; one module a group of commands."""
