"""The whole stack on this machine: a local AWS, started and stopped."""
