"""Point-in-time exports: manifests, files, and their slots in order."""
