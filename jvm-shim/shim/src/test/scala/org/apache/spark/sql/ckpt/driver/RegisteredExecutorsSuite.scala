// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import scala.collection.mutable
import scala.concurrent.Future
import scala.reflect.ClassTag

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkConf
import org.apache.spark.rpc.{RpcAddress, RpcEndpointRef, RpcTimeout}
import org.apache.spark.sql.ckpt.protocol.Message

class RegisteredExecutorsSuite extends AnyFunSuite {

  /** As the references of executors: all are equal. */
  private class Executor(fails: Boolean = false) extends RpcEndpointRef(new SparkConf(false)) {
    val heard = mutable.ArrayBuffer.empty[Any]

    override def address: RpcAddress = null
    override def name: String = "executor"
    override def ask[T: ClassTag](message: Any, timeout: RpcTimeout): Future[T] =
      throw new UnsupportedOperationException
    override def equals(other: Any): Boolean = other.isInstanceOf[Executor]
    override def hashCode: Int = 0

    override def send(message: Any): Unit = {
      heard += message
      if (fails) throw new IllegalStateException("gone")
    }
  }

  private def notification(version: Long) = Message(Message.Notify, "job", s"""{"version":$version}""")

  private def headers(executor: Executor): Seq[String] = executor.heard.toSeq.map {
    case (Message.Notify, "job", header: String, _, _) => header
  }

  test("every executor is told, and one that is removed is not") {
    val executors = new RegisteredExecutors
    val (first, second) = (new Executor, new Executor)
    executors.add("1", first)
    executors.add("2", second)
    executors.tell(notification(1))
    executors.remove("1")
    executors.tell(notification(2))
    assert(headers(first) == Seq("""{"version":1}"""))
    assert(headers(second) == Seq("""{"version":1}""", """{"version":2}"""))
  }

  test("one that cannot be reached is forgotten, and the others are told") {
    val executors = new RegisteredExecutors
    val (dead, living) = (new Executor(fails = true), new Executor)
    executors.add("1", dead)
    executors.add("2", living)
    executors.tell(notification(1))
    executors.tell(notification(2))
    assert(dead.heard.size == 1 && living.heard.size == 2)
  }
}
