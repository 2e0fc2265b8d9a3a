"""Outside shapes: JSON as text, and texts and tables as a terminal may show them."""
