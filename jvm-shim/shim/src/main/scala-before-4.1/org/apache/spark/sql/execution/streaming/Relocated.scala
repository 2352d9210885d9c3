// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution
package streaming

/** Spark's classes under the names that they have since 4.1. */
package object runtime {
  type IncrementalExecution = streaming.IncrementalExecution
  type MicroBatchExecution = streaming.MicroBatchExecution
  type MicroBatchExecutionContext = streaming.MicroBatchExecutionContext
  type StreamExecution = streaming.StreamExecution
  type StreamingRelation = streaming.StreamingRelation
  type WatermarkPropagator = streaming.WatermarkPropagator
  val MicroBatchExecution = streaming.MicroBatchExecution
  val StreamExecution = streaming.StreamExecution
  val WatermarkPropagator = streaming.WatermarkPropagator
}

package object checkpointing {
  type CheckpointFileManager = streaming.CheckpointFileManager
  type HDFSMetadataLog[A <: AnyRef] = streaming.HDFSMetadataLog[A]
  type OffsetSeq = streaming.OffsetSeq
  type OffsetSeqMetadata = streaming.OffsetSeqMetadata
  val CheckpointFileManager = streaming.CheckpointFileManager
  val OffsetSeqMetadata = streaming.OffsetSeqMetadata
}

package operators {
  package object stateful {
    type SessionWindowStateStoreSaveExec = streaming.SessionWindowStateStoreSaveExec
    type StatefulOperator = streaming.StatefulOperator
    type StateStoreSaveExec = streaming.StateStoreSaveExec
    type StateStoreWriter = streaming.StateStoreWriter
    type StreamingDeduplicateExec = streaming.StreamingDeduplicateExec
    type StreamingDeduplicateWithinWatermarkExec = streaming.StreamingDeduplicateWithinWatermarkExec
  }

  package stateful {
    package object flatmapgroupswithstate {
      type FlatMapGroupsWithStateExec = streaming.FlatMapGroupsWithStateExec
    }

    package object transformwithstate {
      type TransformWithStateExec = streaming.TransformWithStateExec
    }

    package object join {
      type StreamingSymmetricHashJoinExec = streaming.StreamingSymmetricHashJoinExec
    }
  }
}
