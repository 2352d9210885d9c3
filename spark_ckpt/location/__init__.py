"""A checkpoint location: how it is found, listed and opened."""
