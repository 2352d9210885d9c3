"""Codec of the `_metadata` file of Flink checkpoints and savepoints; it needs neither Spark nor Flink.

    metadata = spark_ckpt.metadata.load("s3://bucket/checkpoints/chk-17")
    for operator in metadata.operator_states:
        ...
    spark_ckpt.metadata.dump(metadata, "copy/_metadata", version=metadata.version)

Reads and writes versions 2 to 6, the versions that Flink 1.3 to 2.1 write. The classes bear Flink's names.
`convert` converts between versions, `relocate` rewrites the paths of moved state files, and `required_release` returns
the oldest Flink release that can read the result.
"""

from __future__ import annotations

from spark_ckpt.metadata.errors import (
    Loss,
    MetadataFormatError,
    MetadataLossError,
    MetadataNotFoundError,
    MetadataValueError,
    NothingToRelocateError,
    PathPrefixError,
    UnsupportedMetadataVersionError,
)
from spark_ckpt.metadata.files import METADATA_FILE_NAME, dump, dumps, load, loads
from spark_ckpt.metadata.handles import (
    ByteStreamStateHandle,
    ChangelogStateBackendHandle,
    ChangelogStateHandle,
    ChangelogStateHandleStreamImpl,
    CheckpointedStateScope,
    DistributionMode,
    EmptySegmentFileStateHandle,
    FileMergingOperatorStreamStateHandle,
    FileStateHandle,
    HandleAndLocalPath,
    HandleAndOffset,
    IncrementalRemoteKeyedStateHandle,
    InMemoryChangelogStateHandle,
    KeyedStateHandle,
    KeyGroupsSavepointStateHandle,
    KeyGroupsStateHandle,
    OperatorStateHandle,
    OperatorStreamStateHandle,
    RelativeFileStateHandle,
    SegmentFileStateHandle,
    StateChange,
    StateMetaInfo,
    StreamStateHandle,
)
from spark_ckpt.metadata.keyrange import KeyGroupRange, KeyGroupRangeOffsets
from spark_ckpt.metadata.model import (
    CheckpointMetadata,
    FinishedOperatorSubtaskState,
    FullyFinishedOperatorState,
    InputChannelInfo,
    InputChannelStateHandle,
    MasterState,
    OperatorState,
    OperatorSubtaskState,
    ResultSubpartitionInfo,
    ResultSubpartitionStateHandle,
)
from spark_ckpt.metadata.releases import FlinkRelease, RequiredRelease, required_release
from spark_ckpt.metadata.relocation import Relocation, relative_paths, relocate
from spark_ckpt.metadata.versions import convert

__all__ = [
    "METADATA_FILE_NAME",
    "ByteStreamStateHandle",
    "ChangelogStateBackendHandle",
    "ChangelogStateHandle",
    "ChangelogStateHandleStreamImpl",
    "CheckpointMetadata",
    "CheckpointedStateScope",
    "DistributionMode",
    "EmptySegmentFileStateHandle",
    "FileMergingOperatorStreamStateHandle",
    "FileStateHandle",
    "FinishedOperatorSubtaskState",
    "FlinkRelease",
    "FullyFinishedOperatorState",
    "HandleAndLocalPath",
    "HandleAndOffset",
    "InMemoryChangelogStateHandle",
    "IncrementalRemoteKeyedStateHandle",
    "InputChannelInfo",
    "InputChannelStateHandle",
    "KeyGroupRange",
    "KeyGroupRangeOffsets",
    "KeyGroupsSavepointStateHandle",
    "KeyGroupsStateHandle",
    "KeyedStateHandle",
    "Loss",
    "MasterState",
    "MetadataFormatError",
    "MetadataLossError",
    "MetadataNotFoundError",
    "MetadataValueError",
    "NothingToRelocateError",
    "OperatorState",
    "OperatorStateHandle",
    "OperatorStreamStateHandle",
    "OperatorSubtaskState",
    "PathPrefixError",
    "RelativeFileStateHandle",
    "Relocation",
    "RequiredRelease",
    "ResultSubpartitionInfo",
    "ResultSubpartitionStateHandle",
    "SegmentFileStateHandle",
    "StateChange",
    "StateMetaInfo",
    "StreamStateHandle",
    "UnsupportedMetadataVersionError",
    "convert",
    "dump",
    "dumps",
    "load",
    "loads",
    "relative_paths",
    "relocate",
    "required_release",
]
