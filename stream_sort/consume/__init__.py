"""Released messages go out: deliver, checkpoint, park, dead letters."""
