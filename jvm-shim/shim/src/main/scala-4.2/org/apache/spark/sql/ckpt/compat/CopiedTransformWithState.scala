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
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec

/** Spark's operator with the arguments of another one. */
private[compat] abstract class CopiedTransformWithState(@transient original: TransformWithStateExec)
    extends TransformWithStateExec(
      original.keyDeserializer,
      original.valueDeserializer,
      original.groupingAttributes,
      original.dataAttributes,
      original.statefulProcessor,
      original.timeMode,
      original.outputMode,
      original.keyEncoder,
      original.outputObjAttr,
      original.stateInfo,
      original.batchTimestampMs,
      original.prevBatchTimestampMs,
      original.eventTimeWatermarkForLateEvents,
      original.eventTimeWatermarkForEviction,
      original.child,
      original.isStreaming,
      original.hasInitialState,
      original.initialStateGroupingAttrs,
      original.initialStateDataAttrs,
      original.initialStateDeserializer,
      original.initialState)
