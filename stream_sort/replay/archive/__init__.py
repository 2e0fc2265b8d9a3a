"""Released history as ordered Parquet segments: format, reader and job."""
