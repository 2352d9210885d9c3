// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.benchmark.nexmark

import org.apache.spark.sql.{Encoder, Encoders}
import org.apache.spark.sql.streaming._

/** Orders of the queries, total where the SQL of Nexmark leaves ties open, so that each provider gives one answer. */
private object Orders {

  /** The winner of an auction first: the highest bid, of these the earliest. */
  val winning: Ordering[Bid] = Ordering.by(bid => (-bid.price, bid.dateTime.getTime, bid.bidder, bid.extra))

  /** The latest bid of a bidder first. */
  val latest: Ordering[Bid] = Ordering.by(bid => (-bid.dateTime.getTime, -bid.price, bid.extra))

  /** Auctions as they end. */
  val ended: Ordering[Winner] = Ordering.by(winner => (winner.expires.getTime, winner.id))
}

/** The winning bid of each auction, once the watermark has passed its end (q9; the first half of q4 and q6). */
class WinningBid extends StatefulProcessor[Long, Lot, Winner] {
  @transient private var auction: ValueState[Auction] = _
  @transient private var best: ValueState[Bid] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit = {
    auction = getHandle.getValueState("auction", Encoders.product[Auction], TTLConfig.NONE)
    best = getHandle.getValueState("best", Encoders.product[Bid], TTLConfig.NONE)
  }

  override def handleInputRows(id: Long, lots: Iterator[Lot], timers: TimerValues): Iterator[Winner] = {
    val bids = Vector.newBuilder[Bid]
    var begun: Option[Auction] = None
    lots.foreach { lot =>
      begun = begun.orElse(lot.auction)
      bids ++= lot.bid
    }
    begun.foreach { found =>
      auction.update(found)
      getHandle.registerTimer(found.expires.getTime)
    }
    // A bid comes before its auction only where its time is earlier, which the rule below excludes.
    val current = begun.orElse(Option(auction.get()))
    val valid = current.toSeq.flatMap { of =>
      bids.result().filter(bid => !bid.dateTime.before(of.dateTime) && !bid.dateTime.after(of.expires))
    }
    if (valid.nonEmpty) {
      val highest = (valid ++ Option(best.get())).min(Orders.winning)
      if (valid.exists(_ eq highest)) best.update(highest)
    }
    Iterator.empty
  }

  override def handleExpiredTimer(id: Long, timers: TimerValues, expired: ExpiredTimerInfo): Iterator[Winner] = {
    val winner = for (of <- Option(auction.get()); bid <- Option(best.get())) yield WinningBid.of(of, bid)
    auction.clear()
    best.clear()
    winner.iterator
  }
}

private object WinningBid {
  def of(auction: Auction, bid: Bid): Winner = Winner(
    auction.id,
    auction.itemName,
    auction.description,
    auction.initialBid,
    auction.reserve,
    auction.dateTime,
    auction.expires,
    auction.seller,
    auction.category,
    auction.extra,
    bid.auction,
    bid.bidder,
    bid.price,
    bid.dateTime,
    bid.extra)
}

/** Running average of the winning bids of a category (q4). */
class CategoryAverage extends StatefulProcessor[Long, Winner, Average] {
  @transient private var totals: ValueState[(Long, Long)] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    totals = getHandle.getValueState(
      "totals",
      Encoders.tuple(Encoders.scalaLong, Encoders.scalaLong),
      TTLConfig.NONE)

  override def handleInputRows(category: Long, winners: Iterator[Winner], timers: TimerValues): Iterator[Average] = {
    var (sum, count) = Option(totals.get()).getOrElse((0L, 0L))
    winners.foreach { winner =>
      sum += winner.price
      count += 1
    }
    totals.update((sum, count))
    Iterator.single(Average(category, sum / count))
  }
}

/** Average of a seller's last ten winning bids, at each end of an auction (q6). */
class SellerAverage extends StatefulProcessor[Long, Winner, Average] {
  @transient private var last: ListState[Long] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    last = getHandle.getListState("last", Encoders.scalaLong, TTLConfig.NONE)

  override def handleInputRows(seller: Long, winners: Iterator[Winner], timers: TimerValues): Iterator[Average] = {
    var prices = last.get().toVector
    val averages = winners.toVector.sorted(Orders.ended).map { winner =>
      prices = (prices :+ winner.price).takeRight(SellerAverage.Auctions)
      Average(seller, prices.sum / prices.size)
    }
    last.put(prices.toArray)
    averages.iterator
  }
}

private object SellerAverage {
  val Auctions = 10
}

/** The latest bid of each bidder for each auction (q18). */
class LatestBid extends StatefulProcessor[(Long, Long), Bid, Bid] {
  @transient private var latest: ValueState[Bid] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    latest = getHandle.getValueState("latest", Encoders.product[Bid], TTLConfig.NONE)

  override def handleInputRows(key: (Long, Long), bids: Iterator[Bid], timers: TimerValues): Iterator[Bid] = {
    val newest = bids.min(Orders.latest)
    val known = Option(latest.get())
    if (known.exists(Orders.latest.lteq(_, newest))) Iterator.empty
    else {
      latest.update(newest)
      Iterator.single(newest)
    }
  }
}

/** The ten highest bids for each auction (q19); the whole list again where it has changed. */
class HighestBids extends StatefulProcessor[Long, Bid, Ranked] {
  @transient private var highest: ListState[Bid] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    highest = getHandle.getListState("highest", Encoders.product[Bid], TTLConfig.NONE)

  override def handleInputRows(auction: Long, bids: Iterator[Bid], timers: TimerValues): Iterator[Ranked] = {
    val known = highest.get().toVector
    val now = (known ++ bids).sorted(Orders.winning).take(HighestBids.Places)
    if (now.size == known.size && now.lazyZip(known).forall(_ eq _)) Iterator.empty
    else {
      highest.put(now.toArray)
      now.iterator.zipWithIndex.map { case (bid, place) => HighestBids.ranked(bid, place + 1) }
    }
  }
}

private object HighestBids {
  val Places = 10

  def ranked(bid: Bid, place: Int): Ranked =
    Ranked(bid.auction, bid.bidder, bid.price, bid.channel, bid.url, bid.dateTime, bid.extra, place)
}

/** Encoders of the keys. */
private object Keys {
  implicit val id: Encoder[Long] = Encoders.scalaLong
  implicit val pair: Encoder[(Long, Long)] = Encoders.tuple(Encoders.scalaLong, Encoders.scalaLong)
}
