"""Golden locations: checkpoint locations written by earlier releases, which every later release must continue.

`locations/<release>/<name>/` holds the checkpoint location (or savepoint) of one small query, its input, and
`golden.json` with its output and the rows of its state. `make golden` writes those of the current release.
"""
