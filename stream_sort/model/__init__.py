"""The rules, pure and stdlib only: what a message is, what a run is, what an outcome says. The part to read first."""
