import org.apache.spark.sql.{Dataset, Encoder, Encoders, Row}
import org.apache.spark.sql.streaming._

/** Rows of a key, once more when the key has settled: some time after its first row since the last time. */
class SettledCounts extends StatefulProcessor[String, Row, (String, Long, Long)] {
  @transient private var count: ValueState[Long] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    count = getHandle.getValueState[Long]("count", Encoders.scalaLong, TTLConfig.NONE)

  override def handleInputRows(
      key: String,
      rows: Iterator[Row],
      timers: TimerValues): Iterator[(String, Long, Long)] = {
    count.update(rows.size + (if (count.exists()) count.get() else 0L))
    if (getHandle.listTimers().isEmpty) {
      getHandle.registerTimer(timers.getCurrentProcessingTimeInMs() + SettledCounts.AfterMs)
    }
    Iterator((key, count.get(), 0L))
  }

  override def handleExpiredTimer(
      key: String,
      timers: TimerValues,
      expired: ExpiredTimerInfo): Iterator[(String, Long, Long)] = Iterator((key, count.get(), 1L))
}

object SettledCounts {
  private val AfterMs = 50L

  /** The transformed stream, with columns `_1` (key), `_2` (rows) and `_3` (1 for a settled key). */
  def of(rows: Dataset[Row]): Dataset[Row] = {
    implicit val text: Encoder[String] = Encoders.STRING
    implicit val output: Encoder[(String, Long, Long)] =
      Encoders.tuple(Encoders.STRING, Encoders.scalaLong, Encoders.scalaLong)
    rows.groupByKey((row: Row) => row.getAs[String]("key"))
      .transformWithState(new SettledCounts, TimeMode.ProcessingTime(), OutputMode.Update())
      .toDF()
  }
}
