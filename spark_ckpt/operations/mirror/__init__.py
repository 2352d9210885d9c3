"""Mirrors: copies of a location elsewhere that follow a running query, and the failover to one."""
