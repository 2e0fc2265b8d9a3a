"""Shipped for users' own tests: contracts of the ports, a movable clock, the simulator."""
