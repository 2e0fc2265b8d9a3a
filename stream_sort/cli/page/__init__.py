"""The page that `stream-sort report` writes: what is known of the queues, as charts and tables, in one HTML file."""
