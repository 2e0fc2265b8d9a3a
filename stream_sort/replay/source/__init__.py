"""The data source `stream_sort`: options, plan, rows and stream."""
