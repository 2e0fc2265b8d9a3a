"""Files on this machine or on S3, under one interface."""
