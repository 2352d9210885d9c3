"""The checkpoint coordinator: acknowledgements, completion and retention of checkpoints.

`job.Job` is one run of a query. It accesses storage only through `spark_ckpt.storage` and time only through
`spark_ckpt.clock`. Everything else here is plain data and decisions.
"""
