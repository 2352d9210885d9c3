"""Writer of state from rows: encoded rows of a store, spilled to the local disk, become base snapshots."""
