// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec

/** Spark's operator with the arguments of another one; the constructor takes `isRealTimeMode` since 4.3. */
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
      original.isRealTimeMode,
      original.hasInitialState,
      original.initialStateGroupingAttrs,
      original.initialStateDataAttrs,
      original.initialStateDeserializer,
      original.initialState)
