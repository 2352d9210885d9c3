// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.io.{FileNotFoundException, IOException}
import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path => LocalPath}
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import com.sun.management.ThreadMXBean
import jdk.jfr.Recording
import jdk.jfr.consumer.RecordingFile
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumException, FileAlreadyExistsException, Path}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.util.Utils

/** Spark's own manager is the judge: of the files, and of what a reader sees. */
class LocalLogFilesSuite extends AnyFunSuite {

  private val conf = new Configuration()

  private def withFolder(body: (CheckpointFileManager, CheckpointFileManager, LocalPath) => Unit): Unit = {
    val folder = Utils.createTempDir(namePrefix = "logs").toPath
    val sparks = CheckpointFileManager.create(new Path(folder.toUri), conf)
    val ours = LocalLogFiles.around(sparks, new Path(folder.toUri), conf)
    assert(ours.isInstanceOf[LocalLogFiles])
    body(ours, sparks, folder)
  }

  private def in(folder: LocalPath, name: String): Path = new Path(folder.resolve(name).toUri)

  private def write(manager: CheckpointFileManager, path: Path, content: Array[Byte], over: Boolean = false): Unit = {
    val out = manager.createAtomic(path, over)
    out.write(content)
    out.close()
  }

  private def read(manager: CheckpointFileManager, path: Path): Array[Byte] = {
    val stream = manager.open(path)
    try stream.readAllBytes() finally stream.close()
  }

  private def names(folder: LocalPath): Set[String] = {
    val files = Files.list(folder)
    try files.iterator.asScala.map(_.getFileName.toString).toSet finally files.close()
  }

  test("files, their checksums and permissions are those of Spark's manager") {
    withFolder { (ours, sparks, folder) =>
      for (length <- Seq(0, 1, 511, 512, 513, 1024, 5000, 65535, 65536, 65537, 300000)) {
        val content = Array.tabulate(length)(i => (i * 31).toByte)
        write(ours, in(folder, s"ours-$length"), content)
        write(sparks, in(folder, s"sparks-$length"), content)
        for ((prefix, suffix) <- Seq("" -> "", "." -> ".crc")) {
          val a = folder.resolve(s"${prefix}ours-$length$suffix")
          val b = folder.resolve(s"${prefix}sparks-$length$suffix")
          assert(Files.readAllBytes(a).sameElements(Files.readAllBytes(b)), a)
          assert(PosixFilePermissions.toString(Files.getPosixFilePermissions(a)) ==
            PosixFilePermissions.toString(Files.getPosixFilePermissions(b)))
        }
        assert(read(sparks, in(folder, s"ours-$length")).sameElements(content))
      }
      assert(names(folder).forall(!_.endsWith(".tmp")))
    }
  }

  test("an entry is written as it comes, in pieces of any size, and little of it is in memory") {
    withFolder { (ours, _, folder) =>
      val out = ours.createAtomic(in(folder, "9.compact"), overwriteIfPossible = false)
      val line = Array.tabulate(1 << 20)(i => (i * 7).toByte)
      for (i <- 0 until 4) {
        out.write(i)
        out.write(line)
        val written = names(folder).filter(_.endsWith(".tmp")).map(name => Files.size(folder.resolve(name)))
        assert(written.sum > i * line.length && written.sum + (1 << 17) > (i + 1L) * line.length)
      }
      out.close()
      val expected = (0 until 4).map(i => i.toByte +: line).reduce(_ ++ _)
      assert(checkedRead(in(folder, "9.compact")).sameElements(expected))
      assert(names(folder) == Set("9.compact", ".9.compact.crc"))
    }
  }

  test("the memory for an entry does not grow with it") {
    withFolder { (ours, _, folder) =>
      def allocated(name: String, mebibytes: Int): Long = {
        val line = new Array[Byte](1 << 20)
        val threads = ManagementFactory.getThreadMXBean.asInstanceOf[ThreadMXBean]
        val before = threads.getCurrentThreadAllocatedBytes
        val out = ours.createAtomic(in(folder, name), overwriteIfPossible = false)
        for (_ <- 0 until mebibytes) out.write(line)
        out.close()
        threads.getCurrentThreadAllocatedBytes - before
      }
      allocated("0", 1)
      val (small, large) = (allocated("1", 1), allocated("2", 64))
      assert(large - small < (1 << 20))
    }
  }

  /** By Hadoop's `FileSystem`, which checks the checksums. Spark's manager reads by `FileContext`, which does not. */
  private def checkedRead(path: Path): Array[Byte] = {
    val stream = path.getFileSystem(conf).open(path)
    try stream.readAllBytes() finally stream.close()
  }

  test("a changed byte is found by the checksums") {
    withFolder { (ours, _, folder) =>
      val content = Array.fill(2000)(7.toByte)
      write(ours, in(folder, "0"), content)
      assert(checkedRead(in(folder, "0")).sameElements(content))
      content(1500) = 8
      Files.write(folder.resolve("0"), content)
      intercept[ChecksumException](checkedRead(in(folder, "0")))
    }
  }

  test("of many writers of one entry exactly one wins, and its entry is whole") {
    withFolder { (ours, _, folder) =>
      val losers = new AtomicInteger
      for (round <- 0 until 20) {
        val contents = (0 until 4).map(writer => Array.fill(600 + writer)(writer.toByte))
        val streams = contents.map { content =>
          val out = ours.createAtomic(in(folder, s"$round"), overwriteIfPossible = false)
          out.write(content)
          out
        }
        val threads = streams.map { out =>
          new Thread(() =>
            try out.close()
            catch { case _: FileAlreadyExistsException => losers.incrementAndGet() })
        }
        threads.foreach(_.start())
        threads.foreach(_.join())
        assert(losers.getAndSet(0) == 3)
        val found = checkedRead(in(folder, s"$round"))
        assert(contents.exists(_.sameElements(found)))
        assert(names(folder).forall(!_.endsWith(".tmp")))
      }
    }
  }

  test("an entry whose link was made by a request without an answer, and then repeated, is ours") {
    withFolder { (ours, _, folder) =>
      val out = ours.createAtomic(in(folder, "0"), overwriteIfPossible = false)
      out.write(Array.fill(600)(1.toByte))
      val temporary = names(folder).filter(_.endsWith(".tmp")).toSeq
      assert(temporary.size == 1)
      Files.createLink(folder.resolve("0"), folder.resolve(temporary.head))
      out.close()
      assert(checkedRead(in(folder, "0")).sameElements(Array.fill(600)(1.toByte)))
      assert(names(folder) == Set("0", ".0.crc"))
    }
  }

  test("checksums of an earlier file of the name do not count for the new one") {
    withFolder { (ours, sparks, folder) =>
      write(sparks, in(folder, "0"), Array.fill(600)(1.toByte))
      Files.delete(folder.resolve("0"))
      write(ours, in(folder, "0"), Array.fill(700)(2.toByte))
      assert(checkedRead(in(folder, "0")).sameElements(Array.fill(700)(2.toByte)))
    }
  }

  test("what may be overwritten is") {
    withFolder { (ours, sparks, folder) =>
      write(sparks, in(folder, "0"), Array.fill(600)(1.toByte))
      write(ours, in(folder, "0"), Array.fill(500)(2.toByte), over = true)
      write(ours, in(folder, "0"), Array.fill(700)(3.toByte), over = true)
      assert(checkedRead(in(folder, "0")).sameElements(Array.fill(700)(3.toByte)))
      assert(names(folder) == Set("0", ".0.crc"))
    }
  }

  test("a cancelled entry, and one whose temporary file is gone, leave nothing") {
    withFolder { (ours, _, folder) =>
      val cancelled = ours.createAtomic(in(folder, "0"), overwriteIfPossible = false)
      assert(names(folder).size == 1)
      cancelled.cancel()
      cancelled.close()
      val deleted = ours.createAtomic(in(folder, "0"), overwriteIfPossible = false)
      Files.delete(folder.resolve(names(folder).head))
      intercept[IOException](deleted.close())
      assert(names(folder).isEmpty)
      intercept[FileNotFoundException](ours.createAtomic(in(folder, "none/0"), overwriteIfPossible = false))
    }
  }

  test("names with spaces, percent signs and colons") {
    withFolder { (ours, sparks, folder) =>
      val odd = new Path(new Path(folder.toUri), new Path(null, null, "a b%20c"))
      ours.mkdirs(odd)
      write(ours, new Path(odd, "0"), "v1".getBytes)
      assert(new String(read(sparks, new Path(odd, "0"))) == "v1" && ours.exists(new Path(odd, "0")))
      assert(Files.isRegularFile(folder.resolve("a b%20c").resolve("0")))
    }
  }

  test("an entry starts no process, while Spark's manager does") {
    withFolder { (ours, sparks, folder) =>
      def processes(write: => Unit): Int = {
        val recording = new Recording
        recording.enable("jdk.ProcessStart")
        recording.start()
        write
        recording.stop()
        val events = Files.createTempFile(folder, "events", ".jfr")
        recording.dump(events)
        recording.close()
        RecordingFile.readAllEvents(events).size
      }
      assert(processes(write(ours, in(folder, "0"), "v1".getBytes)) == 0)
      assume(!org.apache.hadoop.util.NativeCodeLoader.isNativeCodeLoaded, "Hadoop's native library is here")
      assert(processes(write(sparks, in(folder, "1"), "v1".getBytes)) > 0, "the events do not come")
    }
  }
}
