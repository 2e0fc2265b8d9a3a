"""Adapters: the only place that talks to tables."""
