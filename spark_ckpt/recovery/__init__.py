"""Damage of a checkpoint, and the way back from it: what a driver and the commands both do."""
