"""What the three jobs share: options, session, tasks, progress, reports."""
