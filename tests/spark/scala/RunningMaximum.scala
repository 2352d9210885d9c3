import org.apache.spark.sql.{Dataset, Encoder, Encoders, Row}
import org.apache.spark.sql.streaming._

/** Rows, maximum and distinct values of a key, in a value state, a map state and a list state. */
class RunningMaximum extends StatefulProcessor[String, Row, (String, Long, Long, Long)] {
  @transient private var largest: ValueState[Long] = _
  @transient private var counts: MapState[Long, Long] = _
  @transient private var values: ListState[Long] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit = {
    val long: Encoder[Long] = Encoders.scalaLong
    largest = getHandle.getValueState[Long]("largest", long, TTLConfig.NONE)
    counts = getHandle.getMapState[Long, Long]("counts", long, long, TTLConfig.NONE)
    values = getHandle.getListState[Long]("values", long, TTLConfig.NONE)
  }

  override def handleInputRows(
      key: String,
      rows: Iterator[Row],
      timers: TimerValues): Iterator[(String, Long, Long, Long)] = {
    rows.map(_.getAs[Long]("value")).foreach { value =>
      largest.update(math.max(value, if (largest.exists()) largest.get() else Long.MinValue))
      counts.updateValue(value, 1L + (if (counts.containsKey(value)) counts.getValue(value) else 0L))
      values.appendValue(value)
    }
    Iterator((key, values.get().size.toLong, largest.get(), counts.keys().size.toLong))
  }
}

object RunningMaximum {

  /** The transformed stream, with columns `_1` (key), `_2` (rows), `_3` (maximum) and `_4` (distinct values). */
  def of(rows: Dataset[Row]): Dataset[Row] = {
    implicit val text: Encoder[String] = Encoders.STRING
    implicit val output: Encoder[(String, Long, Long, Long)] =
      Encoders.tuple(Encoders.STRING, Encoders.scalaLong, Encoders.scalaLong, Encoders.scalaLong)
    rows.groupByKey((row: Row) => row.getAs[String]("key"))
      .transformWithState(new RunningMaximum, TimeMode.None(), OutputMode.Update())
      .toDF()
  }
}
