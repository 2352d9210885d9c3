/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
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
