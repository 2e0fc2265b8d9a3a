"""What nobody else did, and what operators ask for: sweep, lag, trim, recover, withdraw."""
