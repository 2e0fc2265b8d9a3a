"""Fuzzing of every parser of outside input: `python -m tests.properties.fuzz`, or `make fuzz`.

One module a kind of input; what a run finds is kept in tests/properties/cases and tried by every test run from then on.
"""
