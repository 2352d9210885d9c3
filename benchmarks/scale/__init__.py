"""Cost of the coordinator as the number of stores grows, through the real side process."""
