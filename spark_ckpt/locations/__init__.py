"""The places that a user names: checkpoint locations, savepoints and checkpoints, on any file system."""
