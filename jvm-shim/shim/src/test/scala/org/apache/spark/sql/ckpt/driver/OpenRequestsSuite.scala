// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import scala.concurrent.{ExecutionContext, Future, Promise}

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.util.ThreadUtils

class OpenRequestsSuite extends AnyFunSuite {
  private implicit val here: ExecutionContext = ThreadUtils.sameThread

  private val requests = new OpenRequests
  private var sent = 0
  private val ok = Message.reply("{}")

  private def ask(request: Message, reply: Promise[Message]): Future[Message] = requests.ask(request) {
    sent += 1
    reply.future
  }

  private def of(job: String, partition: Int = 0): Message =
    Message("locate", job, s"""{"subtask":[0,"default",$partition]}""")

  private def now(reply: Future[Message]): Option[Message] = reply.value.map(_.get)

  test("a reply that comes in time is the only one") {
    val reply = Promise[Message]()
    val first = ask(of("a"), reply)
    assert(now(first).isEmpty)
    reply.success(ok)
    assert(now(first).contains(ok) && requests.size == 0)
  }

  test("tasks of a job that is at work ask again, and what they asked is passed on once") {
    sent = 0
    val (reply, other) = (Promise[Message](), Promise[Message]())
    val unconcerned = ask(of("b"), other)
    for (_ <- 1 to 3) {
      val asked = Seq(ask(of("a"), reply), ask(of("a", partition = 1), reply))
      assert(asked.forall(now(_).isEmpty))
      requests.askAgain("a")
      assert(asked.forall(now(_).contains(Message.AskAgain)))
    }
    assert(sent == 3 && now(unconcerned).isEmpty)
    val last = ask(of("a"), reply)
    reply.success(ok)
    assert(now(last).contains(ok))
    // The other task was on its way to ask again.
    assert(now(ask(of("a", partition = 1), Promise())).contains(ok) && sent == 3)
    other.success(ok)
    assert(requests.size == 0)
  }

  test("a new attempt is passed on while the earlier one still waits for a reply that never comes") {
    sent = 0
    val (lost, reply) = (Promise[Message](), Promise[Message]())
    val both = Seq(ask(of("a"), lost), ask(of("a"), reply))
    assert(sent == 2)
    reply.success(ok)
    assert(both.forall(now(_).contains(ok)) && requests.size == 0)
    lost.success(Message.reply("{}"))
    assert(requests.size == 0)
  }

  test("a request that fails does so for all that wait") {
    val reply = Promise[Message]()
    val both = Seq(ask(of("a"), reply), ask(of("a"), reply))
    reply.failure(new IllegalStateException("no"))
    assert(both.forall(_.value.exists(_.isFailure)) && requests.size == 0)
  }

  test("replies that no task of a job has asked for again are dropped at its end") {
    val (reply, open) = (Promise[Message](), Promise[Message]())
    ask(of("a"), reply)
    requests.askAgain("a")
    reply.success(ok)
    ask(of("a", partition = 1), open)
    requests.forget("b")
    assert(requests.size == 2)
    requests.forget("a")
    assert(requests.size == 1)
    open.success(ok)
    assert(requests.size == 0)
  }
}
