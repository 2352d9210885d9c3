"""A deterministic simulation of the whole life of checkpoints: the real coordinator in a made-up, faulty world.

`python -m tests.simulation --seed N --trace` plays one schedule and prints what happens in it.
"""
