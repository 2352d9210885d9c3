"""The main job: three stateful queries over a year of flights, killed on the way, compared with the batch answer."""
