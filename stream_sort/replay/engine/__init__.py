"""What the jobs share: options, where to read, reports, progress, plans, the Spark session."""
