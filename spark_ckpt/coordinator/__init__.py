"""The checkpoint coordinator: which acks count, when a checkpoint is complete, and what is kept of it.

`job.Job` is one run of a query. It talks to storage only through `spark_ckpt.storage`, and to time through
`spark_ckpt.clock`; everything else here is plain data and decisions.
"""
