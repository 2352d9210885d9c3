package org.apache.spark.sql.ckpt.backend

/**
 * A family at one version, apart from the one that writes. What it returns stays as it is until the end of
 * the batch. A view of the folded version is good until the table changes, whatever is opened, dropped or set
 * aside on top of it; a view of a committed version until that is folded or dropped. Then it refuses to read.
 */
private[backend] final class FamilyView(
    override private[backend] val owner: KeyedFamily,
    override private[backend] val table: StateTable,
    override private[backend] val buffer: WriteBuffer)
  extends FamilyReader {

  private val epoch = owner.epoch
  private val generation = table.generation

  override private[backend] def checkRead(keyLength: Int): Unit = {
    KeyedFamily.checkKeyLength(keyLength)
    if (table.generation != generation || (buffer != null && owner.epoch != epoch)) {
      throw new IllegalStateException(
        s"The version that this reader of column family $name was made for is gone.")
    }
  }
}
