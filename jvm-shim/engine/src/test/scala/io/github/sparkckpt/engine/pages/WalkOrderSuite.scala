// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import org.scalatest.funsuite.AnyFunSuite

/**
 * A model of the memory that an eviction and a walk share ([[RecordPages]], [[RecordWalk]]): all orders in which a
 * processor or a compiler may execute the loads and stores of both threads. Stores reach all threads at once, as on ARM
 * since version 8.
 */
class WalkOrderSuite extends AnyFunSuite {
  import WalkOrderSuite._

  /** True if a step must stay before a later one of the same thread. */
  private def isOrdered(thread: IndexedSeq[Step], i: Int, j: Int): Boolean = {
    val between = thread.slice(i + 1, j)
    (thread(i), thread(j)) match {
      case (Store(a, _), Load(b)) => a == b
      case (Load(a), Store(b, _)) => a == b || between.contains(Release) || between.contains(Acquire)
      case (Store(a, _), Store(b, _)) => a == b || between.contains(Release)
      case (Load(a), Load(b)) => a == b || between.contains(Acquire)
      case _ => false
    }
  }

  /** What the loads of the second thread may find, by place. */
  private def outcomes(
      first: IndexedSeq[Step], second: IndexedSeq[Step], initially: Map[String, Int]): Set[Map[String, Int]] = {
    val threads = IndexedSeq(first, second)
    def isFence(step: Step) = step == Release || step == Acquire
    val steps = for (t <- 0 to 1; i <- threads(t).indices if !isFence(threads(t)(i))) yield (t, i)
    def next(left: Set[(Int, Int)], memory: Map[String, Int], found: Map[String, Int]): Set[Map[String, Int]] =
      if (left.isEmpty) Set(found)
      else {
        left.filterNot { case (t, j) => left.exists { case (u, i) => u == t && i < j && isOrdered(threads(t), i, j) } }
          .flatMap { case step @ (t, i) =>
            threads(t)(i) match {
              case Store(place, value) => next(left - step, memory + (place -> value), found)
              case Load(place) => next(left - step, memory, found + (place -> memory(place)))
              case _ => Set.empty[Map[String, Int]]
            }
          }
      }
    next(steps.toSet, initially, Map.empty)
  }

  private def withoutFences(thread: IndexedSeq[Step]) = thread.filterNot(step => step == Release || step == Acquire)

  private val walk =
    IndexedSeq(Load("marks"), Acquire, Load("page"), Acquire, Load("used"), Load("evicted"))
  private val before = Map("marks" -> 1, "page" -> 1, "used" -> 1, "evicted" -> 0)

  /** The walk fails, for it takes the page for an evicted one. */
  private def failsIn(found: Map[String, Int]) = found("used") > 0 && found("page") == 0 && found("evicted") == 0

  test("a walk visits no dead record of a page that is freed meanwhile, and does not miss the page") {
    val free = IndexedSeq(Store("used", 0), Release, Store("marks", 0), Release, Store("page", 0))
    def revives(found: Map[String, Int]) = found("used") > 0 && found("page") > 0 && found("marks") == 0
    val all = outcomes(free, walk, before)
    assert(all.size > 1 && !all.exists(failsIn) && !all.exists(revives))
    Seq(withoutFences(free) -> walk, free -> withoutFences(walk)).foreach { case (writer, reader) =>
      val some = outcomes(writer, reader, before)
      assert(some.exists(failsIn) && some.exists(revives), "one side alone does not suffice")
    }
  }

  test("a walk finds a page that is evicted meanwhile, in memory or in the file") {
    val evict = IndexedSeq(Store("evicted", 1), Release, Store("page", 0))
    val all = outcomes(evict, walk, before)
    assert(all.size > 1 && !all.exists(failsIn))
    Seq(withoutFences(evict) -> walk, evict -> withoutFences(walk)).foreach { case (writer, reader) =>
      assert(outcomes(writer, reader, before).exists(failsIn), "one side alone does not suffice")
    }
  }
}

private object WalkOrderSuite {
  sealed trait Step
  final case class Store(place: String, value: Int) extends Step
  final case class Load(place: String) extends Step

  /** Loads and stores before it stay before stores after it. */
  case object Release extends Step

  /** Loads before it stay before loads and stores after it. */
  case object Acquire extends Step
}
