// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.client

import java.lang.ref.WeakReference

import scala.collection.mutable

import io.github.sparkckpt.uncaught.UncaughtErrorsReporter
import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.ckpt.protocol.Notification

class LoadedStoresSuite extends AnyFunSuite {
  private class Store extends NotifiedStore {
    val heard = mutable.ArrayBuffer.empty[Long]
    override def notified(notification: Notification): Unit = heard ++= notification.version
  }

  private def complete(version: Long) = Notification(Notification.Complete, Some(version))

  test("only the stores of the job hear of it") {
    val stores = new LoadedStores
    val (a, b, other) = (new Store, new Store, new Store)
    stores.add("job", a)
    stores.add("job", b)
    stores.add("other", other)
    stores.tell("job", complete(3))
    stores.tell("unknown", complete(4))
    assert(a.heard == Seq(3) && b.heard == Seq(3) && other.heard.isEmpty)
  }

  test("a store that fails keeps the news from no other") {
    val stores = new LoadedStores
    val error = new LinkageError("a class")
    val failing = Seq.fill(2)(new Store {
      override def notified(notification: Notification): Unit = {
        super.notified(notification)
        throw error
      }
    })
    failing.foreach(stores.add("job", _))
    val uncaught = UncaughtErrorsReporter.expecting(_ eq error)(stores.tell("job", complete(3)))
    assert(failing.forall(_.heard == Seq(3)) && uncaught.size == 2)
  }

  test("a store without another reference is released") {
    val stores = new LoadedStores
    // A method of its own: after it no local variable holds the store, and before its end it cannot be collected.
    def added(): WeakReference[Store] = {
      val store = new Store
      stores.add("job", store)
      new WeakReference(store)
    }
    val gone = added()
    eventually(timeout(5.minutes)) {
      System.gc()
      assert(gone.get() == null)
    }
    val store = new Store
    stores.add("job", store)
    stores.tell("job", complete(1))
    assert(store.heard == Seq(1))
  }
}
