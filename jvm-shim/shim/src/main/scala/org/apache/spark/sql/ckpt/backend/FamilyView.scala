package org.apache.spark.sql.ckpt.backend

/**
 * A family at one version, apart from the one that writes. What it returns stays as it is until the end
 * of the batch. Once the batch has ended it refuses to read: its table may be that of another version by
 * then.
 */
private[backend] final class FamilyView(
    override private[backend] val owner: KeyedFamily,
    override private[backend] val table: StateTable,
    override private[backend] val buffer: WriteBuffer)
  extends FamilyReader {

  private val epoch = owner.epoch

  override private[backend] def checkRead(keyLength: Int): Unit = {
    KeyedFamily.checkKeyLength(keyLength)
    if (owner.epoch != epoch) {
      throw new IllegalStateException(
        s"The version that this reader of column family $name was made for is gone.")
    }
  }
}
