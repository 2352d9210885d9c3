// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

/**
 * Records that were read from evicted pages since the table last changed, so that a key that is read and then put, or
 * found by several readers, is read from the disk once. All go when a limit is reached. Thread-safe.
 *
 * A change of the table may give an address to another record. A reader of an abandoned batch may still be in a read
 * from before the change, so a record counts only in the generation in which its read began.
 *
 * @param limit bytes, about; it may change
 */
private[engine] final class LocalRecords(limit: () => Long) {
  private var addresses = new Array[Int](LocalRecords.MinSlots)
  private var records = new Array[Array[Byte]](LocalRecords.MinSlots)
  private var count = 0
  private var size = 0L
  @volatile private var changes = 0

  /** Number of the times that all addresses were forgotten. Ask for it before a read. */
  def generation: Int = changes

  /** Bytes of memory. */
  def bytes: Long = synchronized(size + addresses.length * 8L)

  def get(address: Int): Array[Byte] = synchronized {
    val i = slot(address)
    if (addresses(i) == address) records(i) else null
  }

  /** Adds a record, unless all were forgotten since its read began. */
  def add(address: Int, record: Array[Byte], generation: Int): Unit = synchronized {
    if (generation == changes) {
      if (size >= limit()) empty()
      if (count >= addresses.length / 2) grow()
      put(address, record)
    }
  }

  /** Forgets all records, also those that are being read. */
  def clear(): Unit = synchronized {
    changes += 1
    empty()
  }

  private def empty(): Unit = {
    if (count > 0) {
      val slots = math.max(LocalRecords.MinSlots, addresses.length / 2)
      addresses = new Array[Int](slots)
      records = new Array[Array[Byte]](slots)
      count = 0
      size = 0
    }
  }

  private def put(address: Int, record: Array[Byte]): Unit = {
    val i = slot(address)
    if (addresses(i) == 0) {
      addresses(i) = address
      records(i) = record
      count += 1
      size += record.length + 16
    }
  }

  /** The slot of an address, or the free one for it. */
  private def slot(address: Int): Int = {
    val mask = addresses.length - 1
    var i = (address * 0x9E3779B9) >>> 7 & mask
    while (addresses(i) != 0 && addresses(i) != address) i = (i + 1) & mask
    i
  }

  private def grow(): Unit = {
    val (oldAddresses, oldRecords) = (addresses, records)
    addresses = new Array[Int](oldAddresses.length * 2)
    records = new Array[Array[Byte]](oldAddresses.length * 2)
    count = 0
    size = 0
    var i = 0
    while (i < oldAddresses.length) {
      if (oldAddresses(i) != 0) put(oldAddresses(i), oldRecords(i))
      i += 1
    }
  }
}

private[engine] object LocalRecords {
  final val MinSlots = 64
}
