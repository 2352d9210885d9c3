// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.benchmark.nexmark

import org.apache.spark.sql.{DataFrame, Dataset, Encoders}
import org.apache.spark.sql.streaming.{OutputMode, TimeMode}

/** The queries of Nexmark that need `transformWithState`, over streams of bids or of lots. */
object Queries {
  import Keys._

  /** The winning bid of each auction that has ended (q9). */
  def winners(lots: DataFrame): DataFrame = winningBids(lots).toDF()

  /** Average of the winning bids by category (q4). */
  def categoryAverages(lots: DataFrame): DataFrame =
    winningBids(lots)
      .groupByKey(_.category)
      .transformWithState(new CategoryAverage, TimeMode.None(), OutputMode.Append())(Encoders.product[Average])
      .toDF()

  /** Average of the last ten winning bids by seller (q6). */
  def sellerAverages(lots: DataFrame): DataFrame =
    winningBids(lots)
      .groupByKey(_.seller)
      .transformWithState(new SellerAverage, TimeMode.None(), OutputMode.Append())(Encoders.product[Average])
      .toDF()

  /** The latest bid of each bidder for each auction (q18). */
  def latestBids(bids: DataFrame): DataFrame =
    bids
      .as[Bid](Encoders.product[Bid])
      .groupByKey(bid => (bid.bidder, bid.auction))
      .transformWithState(new LatestBid, TimeMode.None(), OutputMode.Update())(Encoders.product[Bid])
      .toDF()

  /** The ten highest bids for each auction (q19). */
  def highestBids(bids: DataFrame): DataFrame =
    bids
      .as[Bid](Encoders.product[Bid])
      .groupByKey(_.auction)
      .transformWithState(new HighestBids, TimeMode.None(), OutputMode.Update())(Encoders.product[Ranked])
      .toDF()

  private def winningBids(lots: DataFrame): Dataset[Winner] =
    lots
      .as[Lot](Encoders.product[Lot])
      .groupByKey(_.id)
      .transformWithState(new WinningBid, TimeMode.EventTime(), OutputMode.Append())(Encoders.product[Winner])
}
