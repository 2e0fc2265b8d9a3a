"""What `doctor` finds, a module an area: checks of what AWS said. Knows no SDK: its caller brings what asks AWS."""
