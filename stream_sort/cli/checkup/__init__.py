"""What `doctor` looks at, a module an area: checks are functions of what AWS said; `asking` and `standing` ask it."""
