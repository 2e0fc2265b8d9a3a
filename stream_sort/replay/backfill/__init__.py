"""Ordered ranges into files, tables or sinks: plan, ledger, targets and job."""
