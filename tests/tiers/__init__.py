"""Simulation of chains over many batches: what merges and bases write, and what a restart reads."""
