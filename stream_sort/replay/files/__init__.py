"""Files on this machine and in S3, by name, and what the names tell."""
