"""Lambda glue: the only place that knows event shapes; one module a function."""
