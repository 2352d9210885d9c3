// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import java.nio.file.{Files, Path => LocalPath}

import scala.util.Using

import io.github.sparkckpt.engine.segment.RowFilter
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, Path}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.ckpt.families.ColumnFamily
import org.apache.spark.sql.ckpt.protocol.{Blocks, PartitionFilter, SegmentRef}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.SchemaHelper.SchemaWriter
import org.apache.spark.sql.types._
import org.apache.spark.util.Utils

/** Schema files as Spark writes them, and the rows that pass a filter with them. */
private[ckpt] trait RowPartitionsTesting {
  protected val group = StructType(Seq(StructField("id", LongType)))
  private val root = Utils.createTempDir(namePrefix = "row-partitions").toPath
  protected val own = 1

  /** Rows that Spark sends to partition 1 of 3. */
  protected val expected: Set[Long] = {
    val partition = UnsafeProjection.create(
      Seq(HashPartitioning(Seq(BoundReference(0, LongType, nullable = true)), 3).partitionIdExpression))
    (0L until 100L).filter(id => partition(InternalRow(id)).getInt(0) == own).toSet
  }

  protected def schema(name: String, key: StructType, encoder: KeyStateEncoderSpec) =
    StateStoreColFamilySchema(name, 0, key, 0, group, Some(encoder))

  /** The operator's files: a schema file for each list, oldest first. They are named by paths of another place. */
  protected def recorded(operatorId: Long)(files: List[StateStoreColFamilySchema]*): StateStoreId = {
    val store = StateStoreId(root.resolve("state").toUri.toString, operatorId, own)
    val operator = new Path(store.checkpointRootLocation, operatorId.toString)
    val paths = files.indices.map(i => s"_stateSchema/default/$i")
    files.zip(paths).foreach { case (families, path) =>
      val target = LocalPath.of(new Path(operator, path).toUri)
      Files.createDirectories(target.getParent)
      Using.resource(new FSDataOutputStream(Files.newOutputStream(target), null)) { out =>
        SchemaWriter.createSchemaWriter(3).write(families, out)
      }
    }
    Files.createDirectories(root.resolve("offsets"))
    val metadata = OperatorStateMetadataV2(OperatorInfoV1(operatorId, "any"),
      Array(StateStoreMetadataV2("default", 0, 3, paths.map(path => s"file:/elsewhere/$path").toList)), "{}")
    OperatorStateMetadataWriter.createWriter(operator, new Configuration(), 2, Some(4L)).write(metadata)
    store
  }

  protected def filter(store: StateStoreId, operator: String, format: Option[Int]): RowFilter = {
    val default = ColumnFamily(
      "default", group, group, NoPrefixKeyStateEncoderSpec(group), multiValue = false, isInternal = false)
    val segment =
      SegmentRef(0, 1, new Blocks(Array(0), Array(0L)), 0, filters = Seq(PartitionFilter(3, Set(own))))
    val found = StateLocation("id", Array(3, 512), operator, format, 0, Seq(segment))
    new RowPartitions(store, default, new Configuration()).filter(found, segment)
  }

  protected def accepted(rows: RowFilter, family: String, schema: StructType)(key: Long => InternalRow): Set[Long] = {
    val toRow = UnsafeProjection.create(schema)
    (0L until 100L).filter { id =>
      val row = toRow(key(id))
      rows.accepts(family, row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    }.toSet
  }
}
