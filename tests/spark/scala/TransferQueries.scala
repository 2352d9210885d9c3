import java.sql.Timestamp
import java.time.Duration

import org.apache.spark.sql.{Dataset, Encoder, Encoders, Row}
import org.apache.spark.sql.streaming._
import org.apache.spark.sql.types.{LongType, StructField, StructType}

case class Visit(id: Long, user: Option[String], ts: Timestamp, v: Long)

case class Known(id: Long, rows: Long, expired: Boolean, state: String)

/**
 * Rows of a key in a value, a list and a map state.
 *
 * With event time, a timer clears the state of a key without rows for a while. With processing time, the state has
 * TTLs: one that never ends, and one that ends before the next batch. So does one of the timers.
 */
class Remembering(isProcessingTime: Boolean) extends StatefulProcessor[Long, Visit, Known] {
  @transient private var rows: ValueState[Long] = _
  @transient private var brief: ValueState[Long] = _
  @transient private var values: ListState[Long] = _
  @transient private var users: MapState[String, Long] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit = {
    def ttl(duration: Duration) = if (isProcessingTime) TTLConfig(duration) else TTLConfig.NONE
    val long: Encoder[Long] = Encoders.scalaLong
    rows = getHandle.getValueState[Long]("rows", long, ttl(Duration.ofDays(3650)))
    brief = getHandle.getValueState[Long]("brief", long, ttl(Duration.ofMillis(1)))
    values = getHandle.getListState[Long]("values", long, ttl(Duration.ofDays(3650)))
    users = getHandle.getMapState[String, Long]("users", Encoders.STRING, long, ttl(Duration.ofDays(3650)))
  }

  override def handleInputRows(key: Long, visits: Iterator[Visit], times: TimerValues): Iterator[Known] = {
    val known = state(key, expired = false)
    visits.foreach { visit =>
      rows.update(1 + (if (rows.exists()) rows.get() else 0L))
      values.appendValue(visit.v)
      val user = visit.user.getOrElse("none")
      users.updateValue(user, 1 + (if (users.containsKey(user)) users.getValue(user) else 0L))
    }
    brief.update(rows.get())
    if (isProcessingTime) {
      getHandle.registerTimer(times.getCurrentProcessingTimeInMs() + 1) // the next batch is later than that
      getHandle.registerTimer(Remembering.Far + key)
    } else {
      getHandle.listTimers().toSeq.foreach(getHandle.deleteTimer)
      getHandle.registerTimer(times.getCurrentWatermarkInMs() + Duration.ofMinutes(20).toMillis)
    }
    Iterator(known, state(key, expired = false))
  }

  override def handleExpiredTimer(key: Long, times: TimerValues, info: ExpiredTimerInfo): Iterator[Known] = {
    val known = state(key, expired = true)
    if (isProcessingTime) values.clear()
    else Seq(rows, brief, values, users).foreach {
      case state: ValueState[_] => state.clear()
      case state: ListState[_] => state.clear()
      case state: MapState[_, _] => state.clear()
    }
    Iterator(known)
  }

  private def state(key: Long, expired: Boolean): Known = {
    // The other timers of processing time depend on the clock.
    val timers = getHandle.listTimers().toSeq.sorted.map(time =>
      if (isProcessingTime && time < Remembering.Far) "soon" else time.toString)
    val text = Seq(brief.exists(), values.get().mkString(","), users.iterator().toSeq.sorted, timers).mkString(" ")
    Known(key, if (rows.exists()) rows.get() else 0L, expired, text)
  }
}

object Remembering {
  private val Far = 4000000000000L
}

/**
 * Rows of a key whose schemas change with each step: state variables come and go, and values get more fields if the
 * encoding allows it.
 */
class Evolving(step: Int, isAvro: Boolean) extends StatefulProcessor[Long, Visit, Known] {
  @transient private var rows: ValueState[Row] = _
  @transient private var values: ListState[Row] = _
  @transient private var users: MapState[String, Row] = _
  @transient private var ofStep: ValueState[Long] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit = {
    rows = getHandle.getValueState[Row]("rows", encoder, TTLConfig.NONE)
    values = getHandle.getListState[Row]("values", encoder, TTLConfig.NONE)
    users = getHandle.getMapState[String, Row]("users", Encoders.STRING, encoder, TTLConfig.NONE)
    ofStep = getHandle.getValueState[Long](s"step$step", Encoders.scalaLong, TTLConfig.NONE)
  }

  private def fields = if (isAvro) step else 1
  private def encoder = Encoders.row(StructType((1 to fields).map(n => StructField(s"n$n", LongType))))
  private def row(n: Long): Row = Row.fromSeq((1 to fields).map(_ * n))

  override def handleInputRows(key: Long, visits: Iterator[Visit], times: TimerValues): Iterator[Known] = {
    val before = state
    visits.foreach { visit =>
      rows.update(row(1 + count(Option(rows.get()))))
      values.appendValue(row(visit.v))
      val user = visit.user.getOrElse("none")
      users.updateValue(user, row(1 + count(Option(users.getValue(user)))))
    }
    ofStep.update(1 + (if (ofStep.exists()) ofStep.get() else 0L))
    Iterator(Known(key, count(Option(rows.get())), expired = false, s"$before $state"))
  }

  private def count(row: Option[Row]): Long = row.fold(0L)(_.getLong(0))

  private def state: String = {
    val all = Seq(rows.get(), values.get().mkString, users.iterator().toSeq.sortBy(_._1), ofStep.exists())
    all.mkString(" ")
  }
}

/** Queries of `tests/migrate/queries.py`, for rows with a watermark. */
object TransferQueries {

  def remembering(rows: Dataset[Row], isProcessingTime: Boolean): Dataset[Row] = {
    val session = rows.sparkSession
    import session.implicits._
    val time = if (isProcessingTime) TimeMode.ProcessingTime() else TimeMode.EventTime()
    val processor = new Remembering(isProcessingTime)
    // So many keys that some have no rows for long enough to expire.
    rows.as[Visit].groupByKey(_.id % 45).transformWithState(processor, time, OutputMode.Append()).toDF()
  }

  def evolving(rows: Dataset[Row], step: Int, isAvro: Boolean): Dataset[Row] = {
    val session = rows.sparkSession
    import session.implicits._
    val processor = new Evolving(step, isAvro)
    rows.as[Visit].groupByKey(_.id % 12).transformWithState(processor, TimeMode.None(), OutputMode.Append()).toDF()
  }

  /** `flatMapGroupsWithState`, whose groups time out by event time. */
  def flatMapGroups(rows: Dataset[Row]): Dataset[Row] = {
    val session = rows.sparkSession
    import session.implicits._
    rows.as[Visit].groupByKey(_.id)
      .flatMapGroupsWithState[Seq[Long], Known](OutputMode.Append(), GroupStateTimeout.EventTimeTimeout()) {
        (key, visits, state) =>
          val values = state.getOption.getOrElse(Nil) ++ visits.map(_.v).toSeq.sorted
          if (state.hasTimedOut) state.remove()
          else {
            state.update(values)
            state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + Duration.ofMinutes(15).toMillis)
          }
          Iterator(Known(key, values.size.toLong, !state.exists, values.mkString(",")))
      }.toDF()
  }

  /** `mapGroupsWithState`, whose groups time out by processing time: in the next batch, unless they have rows. */
  def mapGroups(rows: Dataset[Row]): Dataset[Row] = {
    val session = rows.sparkSession
    import session.implicits._
    rows.as[Visit].groupByKey(_.id % 40)
      .mapGroupsWithState[Seq[Long], Known](GroupStateTimeout.ProcessingTimeTimeout()) { (key, visits, state) =>
        val values = state.getOption.getOrElse(Nil) ++ visits.map(_.v).toSeq.sorted
        if (state.hasTimedOut) state.remove()
        else {
          state.update(values)
          state.setTimeoutDuration(1)
        }
        Known(key, values.size.toLong, !state.exists, values.mkString(","))
      }.toDF()
  }
}
