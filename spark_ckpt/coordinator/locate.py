"""Location of the state of a subtask."""

from __future__ import annotations

from spark_ckpt.checkpoint.chains import chain_of
from spark_ckpt.checkpoint.errors import StateIdMismatchError
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.restore_plan import restore_plan
from spark_ckpt.compaction.requests import CompactionRequests
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.errors import CheckpointError
from spark_ckpt.format.state_ids import canonical_state_id
from spark_ckpt.messages import NO_COMPACTION, Locate, LocateReply


def located(
    request: Locate,
    state: CheckpointState,
    compactions: CompactionRequests,
    config: CheckpointConfig,
    *,
    is_newest: bool,
    requests_are_slow: bool,
) -> LocateReply:
    """Reply to `locate` from a completed checkpoint of the requested version.

    Args:
        request: request of a store.
        state: completed checkpoint.
        compactions: requests for compactions of the job.
        config: settings of the query.
        is_newest: whether no later version is complete. Only its chain is compacted: that of an earlier one, which a
            repeated task loads, is not the chain that the next ack extends.
        requests_are_slow: whether a request to the storage takes long.

    Raises:
        StateIdMismatchError: the checkpoint has another state id than Spark asks for.
        CheckpointError: the checkpoint has no such subtask.
    """
    assert state.record is not None
    assert state.batch is not None
    key = request.subtask
    chain = chain_of(state.table, key)
    if chain is None:
        stores = "; ".join(f"{store} ({len(chains)} partitions)" for store, chains in state.table.items())
        raise CheckpointError(
            f"checkpoint {state.record.id} of version {request.version} has no state of {key}; it has: {stores}. "
            "The query's stateful operators have changed: start it with a new checkpoint location"
        )
    if request.state_id is not None and canonical_state_id(request.state_id) != chain.state_id:
        raise StateIdMismatchError(
            f"{key}: Spark asks for state {request.state_id} of version {request.version}, but checkpoint "
            f"{state.record.id} has state {chain.state_id}. Spark's commit log and the completed checkpoints "
            "are from different runs: go back to a batch on which both agree"
        )
    store = next(store for store in state.batch.stores if store.key == key.of_operator)
    compaction = compactions.on_load(key, request.version, chain, state.table) if is_newest else NO_COMPACTION
    plan = restore_plan(
        chain,
        config,
        has_exact_rows=state.has_exact_rows(chain),
        is_base_due=compaction.is_full,
        requests_are_slow=requests_are_slow,
    )
    return LocateReply(
        request.state_id or chain.state_id,  # as Spark writes it: commits of earlier releases lack the dashes
        state.record.id,
        state.batch.max_parallelism,
        state.batch.key_group_factors,
        store.name,
        store.state_format_version,
        chain.rows,
        chain.entries,
        compaction,
        restore=plan,
        keep_deltas=compactions.merges_deltas(chain),
    )
