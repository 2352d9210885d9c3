// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import java.util.Arrays

import io.github.sparkckpt.engine.bytes.ListCursor

import org.apache.spark.unsafe.Platform

/**
 * A sorted map from encoded keys, compared as unsigned bytes, to ints other than 0: sorted leaves of up to 128 keys in
 * a sorted array of leaves. One array per key and no nodes, so it is half the size of a `TreeMap` and scans run through
 * memory. Keys are not copied.
 *
 * Two neighbouring leaves always have more than 64 keys together: a removal merges smaller ones. So leaves are at least
 * a quarter full on average.
 */
private[engine] final class OrderedIndex {
  import OrderedIndex._

  private var leaves = new Array[Leaf](4)

  // The head of each leaf's first key, so the search for a leaf scans one array.
  private var firsts = new Array[Long](4)
  private var leafCount = 0
  private var changes = 0
  private var keyBytes = 0L
  private var keyCount = 0

  /** Approximate bytes of keys and leaves. */
  def bytes: Long = keyBytes + keyCount * 16L + leafCount * (LeafSize * 16L + 80) + leaves.length * 12L

  def size: Int = keyCount

  /** Value of a key, 0 if absent. */
  def get(key: Array[Byte]): Int = {
    val l = leafOf(key)
    if (l < 0) {
      0
    } else {
      val at = leaves(l).find(key, head(key))
      if (at >= 0) leaves(l).values(at) else 0
    }
  }

  /** Adds a key, or replaces its value. */
  def insert(key: Array[Byte], value: Int): Unit = {
    var l = math.max(leafOf(key), 0)
    if (leafCount == 0) insertLeaf(0, new Leaf)
    val h = head(key)
    val at = leaves(l).find(key, h)
    if (at >= 0) {
      leaves(l).values(at) = value
    } else {
      changes += 1
      keyCount += 1
      keyBytes += key.length
      var position = -at - 1
      if (leaves(l).count == LeafSize) {
        // Keys added in ascending order fill their leaves: only keys above the new one move.
        val from = if (l == leafCount - 1 && position == LeafSize) LeafSize else LeafSize / 2
        insertLeaf(l + 1, leaves(l).cut(from))
        if (position > from || from == LeafSize) {
          l += 1
          position -= from
        }
      }
      leaves(l).insert(position, key, h, value)
      firsts(l) = leaves(l).heads(0)
    }
  }

  /** Replaces the value of an existing key. */
  def replace(key: Array[Byte], value: Int): Unit = {
    val leaf = leaves(leafOf(key))
    leaf.values(leaf.find(key, head(key))) = value
  }

  /** Removes a key, if present. */
  def delete(key: Array[Byte]): Unit = {
    val l = leafOf(key)
    val at = if (l < 0) -1 else leaves(l).find(key, head(key))
    if (at >= 0) {
      changes += 1
      keyCount -= 1
      keyBytes -= key.length
      val leaf = leaves(l)
      leaf.delete(at)
      if (leaf.count == 0) {
        removeLeaf(l)
      } else {
        firsts(l) = leaf.heads(0)
        if (l + 1 < leafCount && leaf.count + leaves(l + 1).count <= MergedSize) {
          leaf.take(leaves(l + 1))
          removeLeaf(l + 1)
        } else if (l > 0 && leaf.count + leaves(l - 1).count <= MergedSize) {
          leaves(l - 1).take(leaf)
          removeLeaf(l)
        }
      }
    }
  }

  private def removeLeaf(l: Int): Unit = {
    System.arraycopy(leaves, l + 1, leaves, l, leafCount - l - 1)
    System.arraycopy(firsts, l + 1, firsts, l, leafCount - l - 1)
    leafCount -= 1
    leaves(leafCount) = null
    if (leaves.length > 64 && leafCount < leaves.length / 4) {
      leaves = Arrays.copyOf(leaves, leaves.length / 2)
      firsts = Arrays.copyOf(firsts, leaves.length)
    }
  }

  /** The last leaf whose first key is not above the key; -1 if there is none. */
  private def leafOf(key: Array[Byte]): Int = {
    val h = head(key)
    var low = 0
    var high = leafCount - 1
    while (low <= high) {
      val middle = (low + high) >>> 1
      var c = java.lang.Long.compareUnsigned(firsts(middle), h)
      if (c == 0) c = Arrays.compareUnsigned(leaves(middle).keys(0), key)
      if (c <= 0) low = middle + 1 else high = middle - 1
    }
    high
  }

  private def insertLeaf(at: Int, leaf: Leaf): Unit = {
    if (leafCount == leaves.length) {
      leaves = Arrays.copyOf(leaves, leafCount * 2)
      firsts = Arrays.copyOf(firsts, leafCount * 2)
    }
    System.arraycopy(leaves, at, leaves, at + 1, leafCount - at)
    System.arraycopy(firsts, at, firsts, at + 1, leafCount - at)
    leaves(at) = leaf
    firsts(at) = leaf.heads(0)
    leafCount += 1
  }

  /** A cursor before the first key that is not below `start` (null: before all). */
  def cursor(start: Array[Byte]): Cursor = new Cursor(start)

  /** Cursor over the keys in order. It resumes after the last returned key, whatever was added or removed meanwhile. */
  final class Cursor(start: Array[Byte]) {
    private var leaf = 0
    private var position = 0
    private var seen = -1
    private var last: Array[Byte] = start
    private var lastIsTaken = false

    /** The next key, without consuming it; null at the end. */
    def peek: Array[Byte] = {
      if (seen != changes) seek()
      if (leaf < leafCount) leaves(leaf).keys(position) else null
    }

    /** Value of the key of the last [[peek]]. */
    def value: Int = leaves(leaf).values(position)

    /** Consumes the key of the last [[peek]]. */
    def take(): Unit = {
      last = leaves(leaf).keys(position)
      lastIsTaken = true
      position += 1
      settle()
    }

    private def seek(): Unit = {
      seen = changes
      leaf = 0
      position = 0
      if (last != null && leafCount > 0) {
        leaf = math.max(leafOf(last), 0)
        val at = leaves(leaf).find(last, head(last))
        position = if (at < 0) -at - 1 else if (lastIsTaken) at + 1 else at
        settle()
      }
    }

    private def settle(): Unit = {
      if (leaf < leafCount && position >= leaves(leaf).count) {
        leaf += 1
        position = 0
      }
    }
  }
}

private[engine] object OrderedIndex {
  final val LeafSize = 128

  /** Neighbours with this many keys together, or fewer, become one leaf. */
  final val MergedSize = LeafSize / 2

  /** The first 8 bytes of a key as a number whose unsigned order is that of the keys where it differs. */
  private def head(key: Array[Byte]): Long = {
    if (key.length >= 8) {
      val x = Platform.getLong(key, Platform.BYTE_ARRAY_OFFSET)
      if (ListCursor.littleEndian) java.lang.Long.reverseBytes(x) else x
    } else {
      var x = 0L
      var i = 0
      while (i < 8) {
        x = (x << 8) | (if (i < key.length) key(i) & 0xFF else 0)
        i += 1
      }
      x
    }
  }

  private final class Leaf {
    val keys = new Array[Array[Byte]](LeafSize)
    val heads = new Array[Long](LeafSize)
    val values = new Array[Int](LeafSize)
    var count = 0

    /** Position of a key, or -1 minus the position where it belongs. */
    def find(key: Array[Byte], head: Long): Int = {
      var low = 0
      var high = count - 1
      var found = -1
      while (found < 0 && low <= high) {
        val middle = (low + high) >>> 1
        var c = java.lang.Long.compareUnsigned(heads(middle), head)
        if (c == 0) c = Arrays.compareUnsigned(keys(middle), key)
        if (c == 0) found = middle else if (c < 0) low = middle + 1 else high = middle - 1
      }
      if (found >= 0) found else -low - 1
    }

    def insert(at: Int, key: Array[Byte], head: Long, value: Int): Unit = {
      System.arraycopy(keys, at, keys, at + 1, count - at)
      System.arraycopy(heads, at, heads, at + 1, count - at)
      System.arraycopy(values, at, values, at + 1, count - at)
      keys(at) = key
      heads(at) = head
      values(at) = value
      count += 1
    }

    def delete(at: Int): Unit = {
      System.arraycopy(keys, at + 1, keys, at, count - at - 1)
      System.arraycopy(heads, at + 1, heads, at, count - at - 1)
      System.arraycopy(values, at + 1, values, at, count - at - 1)
      count -= 1
      keys(count) = null
    }

    /** Absorbs the entries of the next leaf. */
    def take(next: Leaf): Unit = {
      System.arraycopy(next.keys, 0, keys, count, next.count)
      System.arraycopy(next.heads, 0, heads, count, next.count)
      System.arraycopy(next.values, 0, values, count, next.count)
      count += next.count
    }

    /** Splits off a leaf with the entries from a position on. */
    def cut(from: Int): Leaf = {
      val upper = new Leaf
      upper.count = count - from
      System.arraycopy(keys, from, upper.keys, 0, upper.count)
      System.arraycopy(heads, from, upper.heads, 0, upper.count)
      System.arraycopy(values, from, upper.values, 0, upper.count)
      Arrays.fill(keys.asInstanceOf[Array[AnyRef]], from, count, null)
      count = from
      upper
    }
  }
}
