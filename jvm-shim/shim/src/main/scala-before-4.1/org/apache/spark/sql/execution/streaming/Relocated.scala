// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution
package streaming

/** Spark's classes under the names that they have since 4.1. */
package object runtime {
  type IncrementalExecution = streaming.IncrementalExecution
  type MicroBatchExecution = streaming.MicroBatchExecution
  type MicroBatchExecutionContext = streaming.MicroBatchExecutionContext
  type StreamExecution = streaming.StreamExecution
  val MicroBatchExecution = streaming.MicroBatchExecution
  val StreamExecution = streaming.StreamExecution
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
    type StatefulOperator = streaming.StatefulOperator
    type StateStoreWriter = streaming.StateStoreWriter
  }

  package stateful {
    package object join {
      type StreamingSymmetricHashJoinExec = streaming.StreamingSymmetricHashJoinExec
    }
  }
}
