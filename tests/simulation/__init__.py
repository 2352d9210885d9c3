"""A deterministic simulation of the checkpoint lifecycle: the real coordinator in a made-up, faulty world.

`make simulate` plays a large number of schedules, `make simulate SEED=N` a single one with a full trace.
"""
