"""Shared test code: the provider under test, sessions, feeds, runners, processes and judges."""
