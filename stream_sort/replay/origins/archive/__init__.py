"""An archive: ordered Parquet segments, their manifests and plans, and what of them is whole."""
