"""The main job: three stateful queries over a year of flights, killed along the way and compared with a batch run."""
