// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.benchmark.nexmark

import java.sql.Timestamp

/** A bid, as the generator makes it. */
case class Bid(
    auction: Long,
    bidder: Long,
    price: Long,
    channel: String,
    url: String,
    dateTime: Timestamp,
    extra: String)

/** An auction, as the generator makes it. */
case class Auction(
    id: Long,
    itemName: String,
    description: String,
    initialBid: Long,
    reserve: Long,
    dateTime: Timestamp,
    expires: Timestamp,
    seller: Long,
    category: Long,
    extra: String)

/** An auction or a bid for it, in one stream. */
case class Lot(id: Long, auction: Option[Auction], bid: Option[Bid], dateTime: Timestamp)

/** The highest bid for an auction that has ended. */
case class Winner(
    id: Long,
    itemName: String,
    description: String,
    initialBid: Long,
    reserve: Long,
    dateTime: Timestamp,
    expires: Timestamp,
    seller: Long,
    category: Long,
    extra: String,
    auction: Long,
    bidder: Long,
    price: Long,
    bid_dateTime: Timestamp,
    bid_extra: String)

/** Average price of a category (q4) or of a seller's last auctions (q6). */
case class Average(key: Long, average: Long)

/** A bid and its place among the highest for its auction, from 1. */
case class Ranked(
    auction: Long,
    bidder: Long,
    price: Long,
    channel: String,
    url: String,
    dateTime: Timestamp,
    extra: String,
    rank_number: Long)
