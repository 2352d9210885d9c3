"""A deterministic simulation of the whole life of checkpoints: the real coordinator in a made-up, faulty world.

`make simulate` plays very many schedules, `make simulate SEED=N` one of them, with all that happens in it.
"""
