"""Power loss: what a disk may hold after one, judged at every point of a checkpoint's life."""
