"""Flink's state: its streams and files, tables of it, and exports and imports. The core never imports it."""
