// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.support

import java.nio.ByteBuffer
import java.nio.file.{Files, Path}
import java.util.{HashMap => JHashMap, UUID}

import scala.jdk.CollectionConverters._
import scala.util.Random

import io.github.sparkckpt.engine.backend.{EntryIterator, HashMapStateBackend, HashMapTable, TableReader}
import io.github.sparkckpt.engine.bytes.{Bytes, Slice}
import io.github.sparkckpt.engine.pages.{LocalTier, MemoryBudget}
import io.github.sparkckpt.engine.segment.{
  ArrayByteSource,
  BlockCodec,
  RestoreFilter,
  SegmentBytes,
  SegmentConstants,
  SegmentInfo,
  StateSegment
}
import io.github.sparkckpt.engine.table.{KeyAccess, KeyGroupFunction}
import org.scalatest.Assertions

import org.apache.spark.unsafe.Platform

/** Byte arrays in place of rows, and maps of them to compare with. */
trait BackendTesting extends Assertions {
  type Model = JHashMap[ByteBuffer, ByteBuffer]

  protected val Start: Long = Platform.BYTE_ARRAY_OFFSET

  /** Flags of a segment, which Python reads. */
  protected implicit class Flags(info: SegmentInfo) {
    def isCompressed: Boolean = (info.flags & SegmentConstants.CompressedFlag) != 0
    def isOrdered: Boolean = (info.flags & SegmentConstants.OrderedFlag) != 0
  }

  /** The key group as the hash of the whole key. */
  protected def groupsByHash(k: Int): KeyGroupFunction = (base: AnyRef, offset: Long, length: Int) =>
    Math.floorMod(Bytes.hash(base, offset, length), k)

  /** The local disk below the tables of [[newBackend]], none unless a suite overrides it. */
  protected def tier: LocalTier = null

  protected def newBackend(
      maxParallelism: Int,
      logsWrites: Boolean = false,
      checkTask: () => Unit = () => (),
      codec: BlockCodec = BlockCodec.Uncompressed): HashMapStateBackend =
    new HashMapStateBackend(maxParallelism, logsWrites, tier, codec, checkTask)

  protected def everything: RestoreFilter = (_: Int) => true

  protected def longs(xs: Long*): Array[Byte] = {
    val b = ByteBuffer.allocate(xs.length * 8)
    xs.foreach(b.putLong)
    b.array
  }

  protected def put(f: HashMapTable, key: Array[Byte], value: Array[Byte]): Unit =
    f.put(key, Start, key.length, value, Start, value.length)

  protected def get(f: TableReader, key: Array[Byte]): Array[Byte] =
    if (f.get(key, Start, key.length)) bytes(f.valueBase, f.valueOffset, f.valueLength) else null

  protected def remove(f: HashMapTable, key: Array[Byte]): Boolean = f.remove(key, Start, key.length)

  protected def bytes(base: AnyRef, offset: Long, length: Int): Array[Byte] = {
    val b = new Array[Byte](length)
    Platform.copyMemory(base, offset, b, Start, length)
    b
  }

  protected def key(i: EntryIterator): ByteBuffer =
    ByteBuffer.wrap(bytes(i.keyBase, i.keyOffset, i.keyLength))

  protected def value(i: EntryIterator): ByteBuffer =
    ByteBuffer.wrap(bytes(i.valueBase, i.valueOffset, i.valueLength))

  /** Everything that an iterator gives; fails if it gives a key twice. */
  protected def drain(i: EntryIterator): Model = {
    val all = new Model
    while (i.advance()) assert(all.put(key(i), value(i)) == null, "a key came twice")
    assert(!i.advance())
    all
  }

  protected def contents(f: TableReader): Model = if (f == null) new Model else drain(f.iterator())

  /** Fails with the first difference and not with all of both. */
  protected def assertSame(found: Model, expected: Model, clue: String = ""): Unit = {
    if (found != expected) {
      val keys = new java.util.HashSet[ByteBuffer](found.keySet)
      keys.addAll(expected.keySet)
      keys.removeIf(k => found.get(k) == expected.get(k))
      val k = keys.iterator.next()
      def text(b: ByteBuffer): String = if (b == null) "nothing" else b.array.take(64).mkString(" ")
      fail(s"$clue ${keys.size} keys differ: ${text(k)} has ${text(found.get(k))}, expected " +
        text(expected.get(k)))
    }
  }

  protected def copyOf(m: Model): Model = new Model(m)

  /** A source that gives bytes and counts reads. */
  protected def source(b: Array[Byte]): ArrayByteSource = new ArrayByteSource("test", b)

  /** True if restores load segments one key group at a time. */
  protected def byKeyGroup: Boolean = false

  protected def segment(isBase: Boolean, s: SegmentBytes): StateSegment = StateSegment(
    isBase, source(s.bytes), s.info.offsets, keyGroups = if (byKeyGroup) s.info.keyGroups else Array.emptyIntArray)

  protected def base(b: HashMapStateBackend): SegmentBytes = {
    val s = b.snapshotBase()
    try s.toBytes()
    finally s.close()
  }

  protected def randomBytes(r: Random, length: Int): Array[Byte] = {
    val b = new Array[Byte](length)
    r.nextBytes(b)
    b
  }
}

/** Nearly all state is on the local disk: pages are small, and leave memory whenever they can. */
trait EvictedState extends BackendTesting {
  private lazy val directory = Files.createTempDirectory("evicted")
  private lazy val tiny = EvictedState.tier(directory)

  override protected def tier: LocalTier = tiny

  /** Local files that exist now. */
  protected def localFiles: Seq[Path] = {
    val found = Files.list(directory)
    try found.iterator.asScala.toSeq finally found.close()
  }
}

object EvictedState {
  def tier(directory: Path, limit: Long = 1): LocalTier =
    new LocalTier(limit, new MemoryBudget, () => directory.resolve(UUID.randomUUID().toString),
      maxPageWords = 256)
}

/** Keys are at least one word: its big-endian upper half is the prefix. */
class FirstWordPrefix extends KeyAccess.Prefix {
  private val prefix = new Slice
  private val bytes = new Array[Byte](8)

  override def id: String = "first"

  override def prefixOf(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Slice = {
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET, Platform.getLong(keyBase, keyOffset))
    prefix.point(bytes, Platform.BYTE_ARRAY_OFFSET, 8)
  }
}

/** Keys are in the order of their bytes. */
class ByteOrder extends KeyAccess.Ordered {
  override def id: String = "bytes"

  override def encode(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Array[Byte] = {
    val b = new Array[Byte](keyLength)
    Platform.copyMemory(keyBase, keyOffset, b, Platform.BYTE_ARRAY_OFFSET, keyLength)
    b
  }
}
