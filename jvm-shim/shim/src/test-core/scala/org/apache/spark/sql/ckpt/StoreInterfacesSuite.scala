// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt

import java.lang.reflect.{Method, Modifier}

import scala.collection.mutable
import scala.util.Using

import org.apache.xbean.asm9.{ClassReader, ClassVisitor, MethodVisitor, Opcodes, Type}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.common.SparkVersion
import org.apache.spark.sql.ckpt.store.{CheckpointReadStore, CheckpointStateStore}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.state._

/**
 * Every method of Spark's interfaces is implemented by us or left to Spark's default on purpose, so that a method that
 * a new minor adds is noticed here.
 */
class StoreInterfacesSuite extends AnyFunSuite {
  import StoreInterfacesSuite._

  private val minor = minorOf(SparkVersion.madeFor)

  test("Spark's interfaces have no method that is neither implemented nor left to Spark on purpose") {
    val missing = for {
      (interface, implementation) <- implementations
      method <- methods(interface)
      if !isOurs(implementation, method) && !isListed(implementation, method)
    } yield s"${interface.getSimpleName}.${signature(method)} in ${implementation.getSimpleName}"
    assert(missing.isEmpty, missing.mkString("\n", "\n", ""))
    implementations.foreach { case (interface, _) => assert(methods(interface).nonEmpty, interface) }
  }

  test("a method left to Spark is there since the minor that is named, and none of ours") {
    val wrong = leftToSpark.filter { left =>
      val found = implementations.filter(_._2 == left.implementation)
        .flatMap { case (interface, _) => methods(interface).filter(signature(_) == left.signature) }
      val isThere = found.nonEmpty
      isThere != !Ordering[(Int, Int)].lt(minor, minorOf(left.since)) ||
      (!left.isField && found.exists(isOurs(left.implementation, _)))
    }
    assert(wrong.isEmpty, wrong.mkString("\n", "\n", ""))
  }

  test("a default of Spark that Scala copies into a class is not ours") {
    val maintenance = classOf[StateStoreProvider].getMethod("doMaintenance")
    assert(!isOurs(classOf[CheckpointStateStoreProvider], maintenance))
    assert(isOurs(classOf[CheckpointStateStoreProvider], classOf[StateStoreProvider].getMethod("close")))
  }
}

private object StoreInterfacesSuite {

  /**
   * A method of Spark that an implementation of ours inherits.
   *
   * @param since   Spark's first minor with the method
   * @param isField true for a variable of Spark's trait, whose accessors the Scala compiler puts into our class
   */
  final case class LeftToSpark(
      implementation: Class[_],
      signature: String,
      since: String,
      reason: String,
      isField: Boolean = false)

  private val provider = classOf[CheckpointStateStoreProvider]

  val implementations: Seq[(Class[_], Class[_])] = Seq(
    classOf[StateStoreProvider] -> provider,
    classOf[SupportsFineGrainedReplay] -> provider,
    classOf[StateStore] -> classOf[CheckpointStateStore],
    classOf[ReadStateStore] -> classOf[CheckpointStateStore],
    classOf[ReadStateStore] -> classOf[CheckpointReadStore],
    classOf[CheckpointFileManager] -> classOf[CheckpointLogFileManager])

  private val noMaintenance =
    "bases are written in the background of batches when the coordinator asks, and it deletes old files"
  private val unloading =
    "Spark's mark that keeps its maintenance from a closed provider; our close is short and has no maintenance to meet"

  val leftToSpark: Seq[LeftToSpark] = Seq(
    LeftToSpark(provider, "doMaintenance()", "4.0", noMaintenance),
    LeftToSpark(provider, "doSnapshotMaintenance()", "4.3", noMaintenance),
    LeftToSpark(provider, "doCleanupMaintenance()", "4.3", noMaintenance),
    LeftToSpark(provider, "setUnloaded()", "4.3", unloading),
    LeftToSpark(provider, "unloaded()", "4.3", unloading, isField = true),
    LeftToSpark(provider, "unloaded_$eq(boolean)", "4.3", unloading, isField = true),
    LeftToSpark(provider, "maintenanceLock()", "4.3", unloading, isField = true),
    LeftToSpark(provider,
      "org$apache$spark$sql$execution$streaming$state$StateStoreProvider$_setter_$maintenanceLock_$eq(" +
        "ReentrantReadWriteLock)", "4.3", unloading, isField = true),
    LeftToSpark(classOf[CheckpointStateStore], "release()", "4.1",
      "only stores that read are released; Spark's default for a store that writes says so"),
    LeftToSpark(classOf[CheckpointLogFileManager], "list(Path)", "4.0", "Spark's calls the other list, which is ours"))

  def isListed(implementation: Class[_], method: Method): Boolean =
    leftToSpark.exists(left => left.implementation == implementation && left.signature == signature(method))

  def minorOf(version: String): (Int, Int) = {
    val parts = version.split('.')
    (parts(0).toInt, parts(1).toInt)
  }

  def signature(method: Method): String =
    method.getParameterTypes.map(_.getSimpleName).mkString(method.getName + "(", ",", ")")

  /** Those that a class implements; parameters with defaults have methods of their own, which none does. */
  def methods(interface: Class[_]): Seq[Method] = interface.getDeclaredMethods.toSeq
    .filterNot(method => Modifier.isStatic(method.getModifiers) || method.isSynthetic)
    .filterNot(_.getName.contains("$default$"))
    .sortBy(signature)

  /** True if a class or trait of ours has the body of the method. */
  def isOurs(implementation: Class[_], method: Method): Boolean = ancestors(implementation)
    .filter(_.getName.startsWith("org.apache.spark.sql.ckpt."))
    .exists { owner =>
      owner.getDeclaredMethods.exists { own =>
        own.getName == method.getName && own.getParameterTypes.sameElements(method.getParameterTypes) &&
        !Modifier.isAbstract(own.getModifiers) && !own.isBridge && !isForwarder(own)
      }
    }

  private def ancestors(of: Class[_]): Seq[Class[_]] =
    if (of == null) Nil else of +: (of.getInterfaces.toSeq.flatMap(ancestors) ++ ancestors(of.getSuperclass))

  /** Scala copies a default of a trait into each class as a call of the trait's static method, named with a `$`. */
  private def isForwarder(method: Method): Boolean = {
    val name = method.getName
    calls(method) match {
      case Seq((owner, called)) => called == s"$name$$" && owner.startsWith("org/apache/spark/sql/execution/")
      case _ => false
    }
  }

  /** Owners and names of the methods that a method calls. */
  private def calls(method: Method): Seq[(String, String)] = {
    val found = mutable.ArrayBuffer.empty[(String, String)]
    val visitor = new ClassVisitor(Opcodes.ASM9) {
      override def visitMethod(
          access: Int, name: String, types: String, generic: String, thrown: Array[String]): MethodVisitor =
        if (name != method.getName || types != Type.getMethodDescriptor(method)) null
        else new MethodVisitor(Opcodes.ASM9) {
          override def visitMethodInsn(
              code: Int, owner: String, called: String, calledTypes: String, isInterface: Boolean): Unit =
            found += owner -> called
        }
    }
    val owner = method.getDeclaringClass
    Using.resource(owner.getResourceAsStream(s"/${owner.getName.replace('.', '/')}.class")) { code =>
      new ClassReader(code).accept(visitor, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES)
    }
    found.toSeq
  }
}
