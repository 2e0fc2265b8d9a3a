"""The job that writes released and consumed history to an archive, and trims the table."""
