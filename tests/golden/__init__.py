"""Golden locations: checkpoint locations that earlier releases wrote, which every later release has to continue.

`locations/<release>/<name>/` holds the checkpoint location (or savepoint) of one small query, its input, and
`golden.json` with its output and the rows of its state. `make golden` writes those of the current release.
"""
