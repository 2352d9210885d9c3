"""Power loss: possible contents of a disk afterwards, judged at every point of a checkpoint's life."""
