// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.ckpt.common.EntryPoints
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate._
import org.apache.spark.sql.internal.SQLConf

/** Spark runs `transformWithState` only with its RocksDB provider (`TransformWithStateExecBase`). */
private[ckpt] object TransformWithStateOperators {

  /** Operators of streaming queries, made to accept our provider. */
  val replacement: PartialFunction[SparkPlan, SparkPlan] = {
    case operator: TransformWithStateExec if operator.isStreaming => new CheckpointedTransformWithState(operator)
    case operator: TransformWithStateInPySparkExec if operator.isStreaming =>
      new CheckpointedTransformWithStateInPySpark(operator)
  }
}

/**
 * Common part of both operators. They equal their own kind only: Spark's rules drop a new operator that equals the
 * replaced one.
 */
private[ckpt] trait TakesOurProvider extends TransformWithStateExecBase {
  override protected def validateStateStoreProvider(isStreaming: Boolean): Unit =
    if (conf.getConf(SQLConf.STATE_STORE_PROVIDER_CLASS) != EntryPoints.Provider) {
      super.validateStateStoreProvider(isStreaming)
    }
}

/** Spark's operator of `transformWithState`, made to accept our provider. */
private[ckpt] final class CheckpointedTransformWithState(@transient original: TransformWithStateExec)
    extends CopiedTransformWithState(original)
    with TakesOurProvider {

  override protected def withNewChildrenInternal(left: SparkPlan, right: SparkPlan): TransformWithStateExec =
    new CheckpointedTransformWithState(super.withNewChildrenInternal(left, right))

  override def makeCopy(arguments: Array[AnyRef]): SparkPlan =
    new CheckpointedTransformWithState(original.makeCopy(arguments).asInstanceOf[TransformWithStateExec])

  override def canEqual(other: Any): Boolean = other.isInstanceOf[CheckpointedTransformWithState]

  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)

  override def hashCode(): Int = super.hashCode()
}

/** Spark's operator of `transformWithState` in Python, with rows or pandas, made to accept our provider. */
private[ckpt] final class CheckpointedTransformWithStateInPySpark(@transient original: TransformWithStateInPySparkExec)
    extends TransformWithStateInPySparkExec(
      original.functionExpr,
      original.groupingAttributes,
      original.output,
      original.outputMode,
      original.timeMode,
      original.stateInfo,
      original.batchTimestampMs,
      original.prevBatchTimestampMs,
      original.eventTimeWatermarkForLateEvents,
      original.eventTimeWatermarkForEviction,
      original.userFacingDataType,
      original.child,
      original.isStreaming,
      original.hasInitialState,
      original.initialState,
      original.initialStateGroupingAttrs,
      original.initialStateSchema)
    with TakesOurProvider {

  override protected def withNewChildrenInternal(left: SparkPlan, right: SparkPlan): TransformWithStateInPySparkExec =
    new CheckpointedTransformWithStateInPySpark(super.withNewChildrenInternal(left, right))

  override def makeCopy(arguments: Array[AnyRef]): SparkPlan =
    new CheckpointedTransformWithStateInPySpark(
      original.makeCopy(arguments).asInstanceOf[TransformWithStateInPySparkExec])

  override def canEqual(other: Any): Boolean = other.isInstanceOf[CheckpointedTransformWithStateInPySpark]

  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)

  override def hashCode(): Int = super.hashCode()
}
