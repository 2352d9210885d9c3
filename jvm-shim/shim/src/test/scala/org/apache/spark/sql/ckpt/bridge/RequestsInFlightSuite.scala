// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.protocol.Message

class RequestsInFlightSuite extends AnyFunSuite {
  private val Limit = 5

  private def request(id: Long) = Numbered(id, Message("ack", "job", "{}"))

  private def ids(requests: Seq[Numbered]): Seq[Long] = requests.map(_.id)

  /** Lives of a process that ends over the request `poison`, or over nothing, and answers all else in order. */
  private final class Lives(requests: RequestsInFlight, poison: Long) {
    var open: Seq[Numbered] = Nil
    var told = 0

    /** One life, from its start on; returns how it ended, if it did. */
    def live(): Option[RequestsInFlight.Death] = {
      requests.starting(open)
      run(requests.started())
    }

    private def run(first: Seq[Numbered]): Option[RequestsInFlight.Death] = {
      val inbox = scala.collection.mutable.Queue.from(first)
      while (inbox.nonEmpty) {
        told += 1
        val next = inbox.dequeue()
        if (next.id == poison) return Some(requests.died())
        open = open.filterNot(_.id == next.id)
        inbox ++= requests.answered(next.id)
      }
      None
    }
  }

  test("nothing is sent before the process has started, then all of it at once, in order") {
    val requests = new RequestsInFlight(Limit)
    requests.starting(Seq(1L, 2L).map(request))
    assert(requests.add(request(3)).isEmpty)
    assert(ids(requests.started()) == Seq(1, 2, 3))
    assert(ids(requests.add(request(4))) == Seq(4))
  }

  test("a request that ends every process is found among others, which are all answered") {
    for (poison <- 1L to 6L) {
      val lives = new Lives(new RequestsInFlight(Limit), poison)
      lives.open = (1L to 6L).map(request)
      val deaths = Iterator.continually(lives.live()).take(100).takeWhile(_.exists(_.culprit.isEmpty)).toSeq
      assert(deaths.size <= Limit + 2)
      lives.open = lives.open.filterNot(_.id == poison)
      assert(lives.live().isEmpty)
      assert(lives.open.isEmpty)
    }
  }

  test("the limit is a number of deaths, not of the replies in between") {
    val requests = new RequestsInFlight(Limit)
    var culprit: Option[Numbered] = None
    var deaths = 0
    while (culprit.isEmpty && deaths < 100) {
      requests.starting(Seq(request(7)))
      requests.started()
      // Other queries are served all the time.
      val answeredNow = requests.add(request(1000 + deaths))
      answeredNow.foreach(other => requests.answered(other.id))
      culprit = requests.died().culprit
      deaths += 1
    }
    assert(culprit.map(_.id).contains(7L))
    assert(deaths == Limit + 1)
  }

  test("deaths that no request has caused are held against none") {
    val requests = new RequestsInFlight(Limit)
    for (life <- 0L until 100L) {
      // The process is killed from outside, each time with others in flight.
      requests.starting(Seq(request(0)))
      requests.started()
      requests.answered(0)
      requests.add(request(10 * life + 1))
      requests.add(request(10 * life + 2))
      assert(requests.died().culprit.isEmpty)
    }
  }

  test("after two deaths with a request in flight the next process gets one request at a time until all have a reply") {
    val requests = new RequestsInFlight(Limit)
    for (_ <- 1 to 2) {
      requests.starting(Seq(1L, 2L).map(request))
      assert(ids(requests.started()) == Seq(1, 2))
      requests.died()
    }
    requests.starting(Seq(1L, 2L).map(request))
    assert(ids(requests.started()) == Seq(1))
    assert(requests.add(request(3)).isEmpty)
    assert(requests.add(request(4)).isEmpty)
    assert(ids(requests.answered(1)) == Seq(2))
    assert(ids(requests.answered(2)) == Seq(3, 4))
  }

  test("a process that ends before it has started is held against no request") {
    val requests = new RequestsInFlight(Limit)
    for (_ <- 0 until 100) {
      requests.starting(Seq(request(1)))
      val death = requests.died()
      assert(!death.hadStarted && death.culprit.isEmpty && !death.wasIdle)
    }
  }

  test("a process that ends once more with nothing to do is told from one that was asked for something") {
    val requests = new RequestsInFlight(Limit)
    requests.starting(Nil)
    requests.started()
    requests.add(request(1))
    requests.answered(1)
    assert(!requests.died().wasIdle)
    requests.starting(Nil)
    requests.started()
    assert(requests.died().wasIdle)
  }
}
