"""Results of commands, as text and as JSON."""
