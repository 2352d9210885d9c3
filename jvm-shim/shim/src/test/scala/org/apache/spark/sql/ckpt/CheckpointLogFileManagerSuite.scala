// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt

import java.io.{ByteArrayOutputStream, FileNotFoundException, IOException}
import java.net.URI
import java.util.concurrent.{CompletableFuture, CopyOnWriteArrayList}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{BulkDelete, FileAlreadyExistsException, FileStatus, FileSystem, FilterFileSystem}
import org.apache.hadoop.fs.{FSDataInputStream, FSDataOutputStream, FSDataOutputStreamBuilder, Path}
import org.apache.hadoop.fs.RawLocalFileSystem
import org.apache.hadoop.fs.impl.OpenFileParameters
import org.apache.logging.log4j.LogManager
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.common.{CheckpointFailure, NewFiles}
import org.apache.spark.sql.ckpt.logs.{LogFence, OwnEntries, OwnListing}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

class CheckpointLogFileManagerSuite extends AnyFunSuite {

  private val conf = {
    val conf = new Configuration()
    conf.setClass("fs.put.impl", classOf[PuttingFileSystem], classOf[FileSystem])
    conf.set(SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key, classOf[CheckpointLogFileManager].getName)
    conf
  }

  private def withManager(scheme: String)(body: (CheckpointLogFileManager, Path, PuttingFileSystem) => Unit): Unit = {
    val directory = Utils.createTempDir(namePrefix = "logs").toPath
    val location = new Path(s"$scheme:$directory")
    val fs = location.getFileSystem(conf) match {
      case putting: PuttingFileSystem => putting
      case _ => new PuttingFileSystem
    }
    fs.requests = 0
    fs.isConditional = true
    fs.refusesDeletions = false
    fs.deletions = Nil
    fs.fault = NoFault
    body(new CheckpointLogFileManager(location, conf), new Path(location, "0"), fs)
  }

  private def write(manager: CheckpointLogFileManager, path: Path, text: String): Unit = {
    val out = manager.createAtomic(path, overwriteIfPossible = false)
    out.write(text.getBytes)
    out.close()
  }

  private def read(manager: CheckpointLogFileManager, path: Path): String = {
    val in = manager.open(path)
    try new String(in.readAllBytes()) finally in.close()
  }

  test("an entry is one conditional put, and there when it is closed") {
    withManager("put") { (manager, path, fs) =>
      val out = manager.createAtomic(path, overwriteIfPossible = false)
      out.write("v1".getBytes)
      assert(!manager.exists(path) && fs.requests == 0)
      out.close()
      out.close()
      assert(read(manager, path) == "v1" && fs.requests == 1)
    }
  }

  test("an entry that was just found is opened without asking for it again") {
    withManager("put") { (manager, path, fs) =>
      val other = new Path(path.getParent, "1")
      fs.put(path, "v1".getBytes, ifAbsent = true)
      fs.put(other, "v2".getBytes, ifAbsent = true)
      val before = fs.openedAsKnown
      assert(manager.exists(path) && read(manager, path) == "v1")
      assert(fs.openedAsKnown == before + 1)
      assert(read(manager, path) == "v1")
      assert(manager.exists(path) && read(manager, other) == "v2")
      assert(manager.exists(path) && !manager.exists(new Path(path.getParent, "2")) && read(manager, path) == "v1")
      assert(fs.openedAsKnown == before + 1)
    }
  }

  test("the newest small entries that a manager has put are read back without a request") {
    withManager("put") { (manager, path, fs) =>
      val written = (0 until OwnEntries.MaxEntries + 1).map(number => new Path(path.getParent, number.toString))
      written.foreach { entry =>
        write(manager, entry, s"v1 of ${entry.getName}")
        fs.delete(entry, false)
      }
      val before = fs.lookups
      written.tail.foreach(entry => assert(manager.exists(entry) && read(manager, entry) == s"v1 of ${entry.getName}"))
      assert(fs.lookups == before && !manager.exists(written.head))
      intercept[FileNotFoundException](read(manager, written.head))
      Seq(written(3), written.last).foreach { entry =>
        manager.delete(entry)
        assert(!manager.exists(entry))
      }
    }
  }

  test("entries that a manager keeps in memory are bounded by their bytes") {
    withManager("put") { (manager, path, fs) =>
      val count = OwnEntries.MaxKept / OwnEntries.MaxEntry
      val written = (0 to count).map(number => new Path(path.getParent, number.toString))
      written.foreach { entry =>
        writeLarge(manager, entry, OwnEntries.MaxEntry - 1024)
        fs.delete(entry, false)
      }
      assert(written.count(manager.exists) == count)
    }
  }

  /** An entry of this many bytes and one more, written in pieces. */
  private def writeLarge(manager: CheckpointLogFileManager, path: Path, bytes: Int): Unit = {
    val out = manager.createAtomic(path, overwriteIfPossible = false)
    out.write('x')
    (0 until bytes by 1024).foreach(_ => out.write(new Array[Byte](1024)))
    out.close()
  }

  test("an entry that is not small goes to Spark's manager as it comes, and is not kept") {
    withManager("put") { (manager, path, fs) =>
      writeLarge(manager, path, CheckpointLogFileManager.MaxPut)
      assert(fs.requests == 0 && fs.getFileStatus(path).getLen == CheckpointLogFileManager.MaxPut + 1)
      val out = manager.createAtomic(new Path(path.getParent, "1"), overwriteIfPossible = false)
      out.write(new Array[Byte](CheckpointLogFileManager.MaxPut))
      out.write('x')
      assert(manager.list(path.getParent, _.getName.endsWith(".tmp")).length == 1)
      out.cancel()
      out.close()
      assert(manager.list(path.getParent, _ => true).map(_.getPath.getName).filterNot(_.endsWith(".crc")).toSeq ==
        Seq("0"))
    }
  }

  test("an entry of medium size is put as a whole, and not kept") {
    withManager("put") { (manager, path, fs) =>
      writeLarge(manager, path, OwnEntries.MaxEntry)
      assert(fs.requests == 1)
      fs.delete(path, false)
      assert(!manager.exists(path))
    }
  }

  test("a large entry of a query that was rolled back does not appear") {
    withLocation("put") { (manager, location) =>
      val log = started(location)
      begin(manager, location, 1)
      val entry = new Path(location, "offsets/0")
      assert(isFenced(writeLarge(log, entry, CheckpointLogFileManager.MaxPut)) && !manager.exists(entry))
    }
  }

  test("no request asks for the entry after the last own one; a put finds that another driver was first") {
    withManager("put") { (manager, path, fs) =>
      write(manager, path, "v1")
      val next = new Path(path.getParent, "1")
      fs.put(next, "of another driver".getBytes, ifAbsent = true)
      val before = fs.lookups
      assert(!manager.exists(next) && fs.lookups == before)
      assert(!manager.exists(new Path(path.getParent, "2")) && fs.lookups == before + 1)
      assert(!manager.exists(new Path(path.getParent, "1.tmp")) && fs.lookups == before + 2)
      intercept[FileAlreadyExistsException](write(manager, next, "ours"))
      manager.delete(path)
      assert(manager.exists(next))
    }
  }

  test("every tenth entry of a file source has another name, and a number like the others") {
    withManager("put") { (manager, path, fs) =>
      Seq("8", "9.compact", "10").map(new Path(path.getParent, _)).foreach { entry =>
        val before = fs.lookups
        assert(!manager.exists(entry) && (fs.lookups == before || entry.getName == "8"))
        write(manager, entry, "v1")
      }
    }
  }

  test("a large entry, which is not put, is found by a request") {
    withManager("put") { (manager, path, fs) =>
      write(manager, path, "v1")
      val next = new Path(path.getParent, "1")
      writeLarge(manager, next, CheckpointLogFileManager.MaxPut)
      assert(manager.exists(next) && fs.getFileStatus(next).getLen == CheckpointLogFileManager.MaxPut + 1)
    }
  }

  /** Entries of the offset log of a run, from 0 on. */
  private def entries(location: Path, count: Int): Seq[Path] =
    (0 until count).map(number => new Path(location, s"offsets/$number"))

  test("old entries are deleted ten at once, and gone before that") {
    withLocation("put") { (manager, location) =>
      val (log, fs) = (started(location), location.getFileSystem(conf).asInstanceOf[PuttingFileSystem])
      val written = entries(location, 14)
      written.foreach(write(log, _, "v1"))
      val (first, rest) = written.take(12).splitAt(9)
      first.foreach(log.delete)
      assert(fs.deletions.isEmpty && first.forall(manager.exists) && !first.exists(log.exists))
      assert(names(log, first.head.getParent).toSet == written.drop(9).map(_.getName).toSet)
      first.foreach(entry => intercept[FileNotFoundException](read(log, entry)))
      rest.foreach(log.delete)
      assert(fs.deletions == Seq(first :+ rest.head) && !fs.deletions.head.exists(manager.exists))
      assert(rest.tail.forall(manager.exists) && !rest.exists(log.exists))
    }
  }

  for ((name, open) <- Seq("offsets" -> (started _), "sources/0" -> (startedSource _))) {
    test(s"a run lists its log once, and then knows what it puts and deletes: $name") {
      withLocation("put") { (_, location) =>
        val (log, fs) = (open(location), location.getFileSystem(conf).asInstanceOf[PuttingFileSystem])
        val directory = new Path(location, name)
        val written = (0 until 5).map(number => new Path(directory, number.toString))
        def listed = log.list(directory, _.getName.toLong > 0).toSeq
        write(log, written.head, "v1")
        write(log, written(1), "v1")
        assert(names(log, directory).toSet == Set("0", "1"))
        val (before, began) = (fs.listings, System.currentTimeMillis())
        written.drop(2).foreach(write(log, _, "version 1"))
        log.delete(written(1))
        assert(listed.map(_.getPath.getName).toSet == Set("2", "3", "4"))
        assert(listed.forall(file => file.getLen == 9 && !file.isDirectory && file.getModificationTime >= began))
        assert(fs.listings == before && fs.deletions.isEmpty)
        writeLarge(log, new Path(directory, "5"), CheckpointLogFileManager.MaxPut)
        assert(listed.map(_.getPath.getName).toSet == Set("2", "3", "4", "5") && fs.listings == before + 1)
      }
    }
  }

  test("entries of a source are deleted ten at once, unless the query was rolled back") {
    withLocation("put") { (manager, location) =>
      val (log, fs) = (startedSource(location), location.getFileSystem(conf).asInstanceOf[PuttingFileSystem])
      val written = (0 until 21).map(number => new Path(location, s"sources/0/$number"))
      written.foreach(write(log, _, "v1"))
      written.take(10).foreach(log.delete)
      assert(fs.deletions == Seq(written.take(10)))
      begin(manager, location, 1)
      written.slice(10, 19).foreach(log.delete)
      assert(isFenced(log.delete(written(19))) && written.drop(10).forall(manager.exists))
    }
  }

  test("a listing that is longer than others is not kept") {
    val log = new Path("/log")
    val listing = new OwnListing(log, () => 7L)
    def files(count: Int) = (0 until count).map(number => new FileStatus(1, false, 1, 0, 0, new Path(log, s"$number")))
    assert(listing.files(files(OwnListing.MaxFiles + 1)).size == OwnListing.MaxFiles + 1)
    assert(listing.files(files(OwnListing.MaxFiles)).size == OwnListing.MaxFiles)
    listing.put(new Path("/other/1"), 1)
    assert(listing.files(Nil).size == OwnListing.MaxFiles)
    listing.put(new Path(log, "last"), 1)
    assert(listing.files(Nil).isEmpty)
  }

  test("entries that could not be deleted are named, and deleted with the next one") {
    withLocation("put") { (manager, location) =>
      val (log, fs) = (started(location), location.getFileSystem(conf).asInstanceOf[PuttingFileSystem])
      val written = entries(location, 12)
      written.foreach(write(log, _, "v1"))
      fs.refusesDeletions = true
      written.take(9).foreach(log.delete)
      val failure = intercept[IOException](log.delete(written(9)))
      assert(failure.getMessage.contains("0, 1, 2") && failure.getMessage.endsWith("offsets: denied"))
      fs.refusesDeletions = false
      log.delete(written(10))
      assert(written.map(manager.exists) == written.map(_ == written.last))
    }
  }

  test("an entry that is not old, and entries of a manager without a run, are deleted at once") {
    withLocation("put") { (manager, location) =>
      val (log, written) = (started(location), entries(location, 2))
      written.foreach(write(log, _, "v1"))
      log.delete(written.last)
      manager.delete(written.head)
      assert(!written.exists(manager.exists))
    }
  }

  test("a query that was rolled back deletes no old entries") {
    withLocation("put") { (manager, location) =>
      val log = started(location)
      val written = entries(location, 12)
      written.foreach(write(log, _, "v1"))
      written.take(9).foreach(log.delete)
      begin(manager, location, 1)
      assert(isFenced(log.delete(written(9))) && written.forall(manager.exists))
    }
  }

  test("an entry that could not be put is not taken for there") {
    withManager("put") { (manager, path, fs) =>
      fs.put(path, "of another driver".getBytes, ifAbsent = true)
      intercept[FileAlreadyExistsException](write(manager, path, "ours"))
      fs.delete(path, false)
      assert(!manager.exists(path))
    }
  }

  test("an entry that is deleted after it was found is missing") {
    withManager("put") { (manager, path, _) =>
      write(manager, path, "v1")
      assert(manager.exists(path))
      manager.delete(path)
      intercept[FileNotFoundException](read(manager, path))
      assert(!manager.exists(path))
    }
  }

  test("of two drivers that write different entries the second is told so") {
    withManager("put") { (manager, path, _) =>
      write(manager, path, "of the first")
      intercept[FileAlreadyExistsException](write(manager, path, "of the second"))
      assert(read(manager, path) == "of the first")
    }
  }

  test("without a conditional put, Spark's manager writes the entries, and a warning says so") {
    withManager("put") { (manager, path, fs) =>
      fs.isConditional = false
      assert(!manager.createAtomic(path, overwriteIfPossible = false).isInstanceOf[ExclusiveOutputStream])
      write(manager, path, "of the first")
      intercept[FileAlreadyExistsException](write(manager, path, "of the second"))
      assert(read(manager, path) == "of the first" && manager.exists(path) && fs.requests == 0)
      intercept[IllegalArgumentException](NewFiles.createExclusively(fs, path))
      val warnings = warningsOf(manager.createCheckpointDirectory())
      assert(warnings == Seq(CheckpointLogFileManager.withoutCondition(path.getParent)))
    }
    withManager("put") { (manager, _, _) => assert(warningsOf(manager.createCheckpointDirectory()).isEmpty) }
  }

  /** What [[CheckpointLogFileManager]] warns of meanwhile. */
  private def warningsOf(body: => Unit): Seq[String] = {
    val found = new CopyOnWriteArrayList[String]()
    val appender = new AbstractAppender("warnings", null, null, false, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = found.add(event.getMessage.getFormattedMessage)
    }
    appender.start()
    val logger = LogManager.getLogger(classOf[CheckpointLogFileManager]).asInstanceOf[Logger]
    logger.addAppender(appender)
    try body finally logger.removeAppender(appender)
    found.asScala.toSeq
  }

  test("a put that was repeated, because its answer got lost, finds itself") {
    withManager("put") { (manager, path, fs) =>
      fs.fault = LosesAnswer
      write(manager, path, "v1")
      assert(read(manager, path) == "v1")
    }
  }

  test("a put that failed is an error, and leaves nothing") {
    withManager("put") { (manager, path, fs) =>
      fs.fault = Refuses
      assert(intercept[IOException](write(manager, path, "v1")).getMessage == "refused")
      assert(!manager.exists(path))
      fs.fault = NoFault
      write(manager, path, "v1")
      assert(read(manager, path) == "v1")
    }
  }

  test("a cancelled entry leaves nothing") {
    withManager("put") { (manager, path, fs) =>
      val out = manager.createAtomic(path, overwriteIfPossible = false)
      out.write("v1".getBytes)
      out.cancel()
      out.close()
      assert(!manager.exists(path) && fs.requests == 0)
    }
  }

  test("no query starts on a savepoint") {
    for (scheme <- Seq("file", "put")) {
      withManager(scheme) { (manager, path, _) =>
        assert(manager.createCheckpointDirectory().getName == path.getParent.getName)
        val record = new Path(path.getParent, "savepoint.json")
        write(manager, record, "{}")
        val refused = intercept[CheckpointFailure](manager.createCheckpointDirectory())
        assert(refused.error == "SavepointLocationError")
        assert(refused.reason.contains(s"spark-ckpt restore ${path.getParent} NEW_LOCATION"))
        assert(manager.list(path.getParent, _ => true).map(_.getPath.getName).forall(_.endsWith("savepoint.json")))
      }
    }
  }

  /** A manager of a location, and an empty location. */
  private def withLocation(scheme: String)(body: (CheckpointLogFileManager, Path) => Unit): Unit =
    withManager(scheme) { (manager, path, _) =>
      val location = path.getParent
      Seq("offsets", "commits", "ckpt/rollbacks").foreach(directory => manager.mkdirs(new Path(location, directory)))
      body(manager, location)
    }

  /** The offset log of a run that starts on this thread, as Spark opens it. */
  private def started(location: Path): CheckpointLogFileManager = {
    val resolved = new CheckpointLogFileManager(location, conf).createCheckpointDirectory()
    opened(new Path(resolved, "offsets"))
  }

  /** The log of a source of a run that starts on this thread. */
  private def startedSource(location: Path): CheckpointLogFileManager = {
    val resolved = new CheckpointLogFileManager(location, conf).createCheckpointDirectory()
    opened(new Path(resolved, "sources/0"))
  }

  private def opened(log: Path) = new CheckpointLogFileManager(log, conf)

  private def begin(manager: CheckpointLogFileManager, location: Path, epoch: Long): Unit =
    write(manager, LogFence.marker(location, epoch), "{}")

  private def finish(manager: CheckpointLogFileManager, location: Path, epoch: Long): Unit =
    write(manager, new Path(LogFence.marker(location, epoch).toString.stripSuffix("json") + "done"), "{}")

  private def names(manager: CheckpointLogFileManager, directory: Path): Seq[String] =
    manager.list(directory, _ => true).toSeq.map(_.getPath.getName)

  private def isFenced(body: => Unit): Boolean = intercept[CheckpointFailure](body).error == "LogFencedError"

  test("with rename, a query that was rolled back writes no entry, and leaves nothing") {
    withLocation("file") { (manager, location) =>
      val log = started(location)
      val entry = new Path(location, "offsets/0")
      write(log, entry, "v1")
      begin(manager, location, 1)
      val fenced = intercept[CheckpointFailure](write(log, new Path(location, "offsets/1"), "v1"))
      assert(fenced.error == "LogFencedError" && fenced.reason.contains(location.toString))
      assert(names(manager, entry.getParent).filterNot(_.endsWith(".crc")) == Seq("0"))
      write(manager, new Path(location, "sources-of-a-user"), "no log of Spark's")
    }
  }

  test("with rename, an entry whose temporary file a rollback has deleted never appears") {
    withLocation("file") { (manager, location) =>
      val entry = new Path(location, "offsets/0")
      val out = started(location).createAtomic(entry, overwriteIfPossible = false) // it has looked, then stands still
      out.write("v1".getBytes)
      begin(manager, location, 1)
      val temporary = names(manager, entry.getParent).filter(name => name.startsWith(".0.") && name.endsWith(".tmp"))
      assert(temporary.size == 1)
      manager.delete(new Path(entry.getParent, temporary.head))
      intercept[IOException](out.close())
      assert(!manager.exists(entry))
    }
  }

  test("without rename, a query looks for rollbacks every few seconds") {
    withLocation("put") { (manager, location) =>
      val log = started(location)
      begin(manager, location, 1)
      write(log, new Path(location, "offsets/0"), "within the time for which a rollback waits")
      val fence = LogFence.ofLog(new Path(location, "offsets")).get
      assert(isFenced(fence.check(manager.exists, freshNanos = 0)))
      fence.check(manager.exists, LogFence.FreshNanos)
    }
  }

  test("no query starts during a rollback; the next one keeps to its epoch") {
    for (scheme <- Seq("file", "put")) {
      withLocation(scheme) { (manager, location) =>
        assert(started(location).logEpoch.contains(0))
        begin(manager, location, 1)
        finish(manager, location, 1)
        begin(manager, location, 2)
        val refused = intercept[CheckpointFailure](manager.createCheckpointDirectory())
        assert(refused.error == "RollbackUnfinishedError" && refused.reason.contains("spark-ckpt rollback"))
        finish(manager, location, 2)
        val log = started(location)
        assert(log.logEpoch.contains(2))
        val entry = new Path(location, "offsets/0")
        write(log, entry, "v1")
        assert(read(log, entry) == "v1")
      }
    }
  }

  test("a second start in the driver, which Spark refuses, leaves a run its fence") {
    withLocation("file") { (manager, location) =>
      val offsets = started(location)
      begin(manager, location, 1)
      finish(manager, location, 1)
      val second = started(location)
      assert(isFenced(write(offsets, new Path(location, "offsets/0"), "v1")))
      assert(offsets.logEpoch.contains(0) && second.logEpoch.contains(1))
      write(second, new Path(location, "offsets/0"), "v1")
    }
  }

  test("the logs of a run are fenced on its own thread, too, from the start on the thread that made it") {
    withLocation("file") { (manager, location) =>
      started(location)
      var epochs = Seq.empty[Option[Long]]
      val ofRun = new Thread(() =>
        epochs = Seq("offsets", "commits", "sources").map(log => opened(new Path(location, log)).logEpoch))
      begin(manager, location, 1)
      finish(manager, location, 1)
      started(location) // before the run has opened its logs
      ofRun.start()
      ofRun.join()
      assert(epochs == Seq(Some(0), Some(0), None))
    }
  }

  test("the logs of another location, and of a thread that has started no query, have no fence") {
    withLocation("file") { (_, location) =>
      var epoch: Option[Long] = Some(-1)
      val reader = new Thread(() => epoch = opened(new Path(location, "offsets")).logEpoch)
      started(location)
      withLocation("file")((_, other) => assert(opened(new Path(other, "offsets")).logEpoch.isEmpty))
      reader.start()
      reader.join()
      assert(epoch.isEmpty)
    }
  }

  test("a local disk sees no put, and Spark's way stays for what may be overwritten") {
    withManager("file") { (manager, path, fs) =>
      write(manager, path, "v1")
      assert(read(manager, path) == "v1" && fs.requests == 0)
      intercept[FileAlreadyExistsException](write(manager, path, "v2"))
    }
    withManager("put") { (manager, path, _) =>
      assert(!manager.createAtomic(path, overwriteIfPossible = true).isInstanceOf[ExclusiveOutputStream])
    }
  }
}

private[ckpt] sealed trait Fault
private[ckpt] case object NoFault extends Fault
private[ckpt] case object LosesAnswer extends Fault
private[ckpt] case object Refuses extends Fault

/**
 * A folder that behaves as an object store: a file appears whole with one request, which may say "if there is none".
 */
private[ckpt] class PuttingFileSystem extends FilterFileSystem(new Folder) {
  var requests = 0
  var lookups = 0
  var listings = 0
  var fault: Fault = NoFault

  /** Files that were deleted at once, by request. */
  var deletions: Seq[Seq[Path]] = Nil
  var refusesDeletions = false

  /** Number of files that were opened with a known status. */
  def openedAsKnown: Int = fs.asInstanceOf[Folder].openedAsKnown

  /** False as on Hadoop 3.4.1, which ignores an optional condition. */
  var isConditional = true

  override def hasPathCapability(path: Path, capability: String): Boolean =
    capability == "fs.capability.outputstream.abortable" || (isConditional && capability == PutBuilder.Condition) ||
      super.hasPathCapability(path, capability)

  override def createFile(path: Path): FSDataOutputStreamBuilder[_, _] = new PutBuilder(this, path)

  override def getFileStatus(path: Path): FileStatus = {
    lookups += 1
    super.getFileStatus(path)
  }

  override def listStatus(path: Path): Array[FileStatus] = {
    listings += 1
    super.listStatus(path)
  }

  override def createBulkDelete(path: Path): BulkDelete = new BulkDelete {
    override def pageSize: Int = 250
    override def basePath: Path = path
    override def close(): Unit = ()

    override def bulkDelete(
        paths: java.util.Collection[Path]): java.util.List[java.util.Map.Entry[Path, String]] =
      if (refusesDeletions) {
        paths.asScala.toSeq.map(java.util.Map.entry(_, "denied")).asJava
      } else {
        deletions :+= paths.asScala.toSeq
        paths.forEach(path => delete(path, false))
        java.util.List.of()
      }
  }

  def put(path: Path, content: Array[Byte], ifAbsent: Boolean): Unit = {
    requests += 1
    if (fault == Refuses) throw new IOException("refused")
    if (ifAbsent && exists(path)) throw new FileAlreadyExistsException(path.toString)
    val out = create(path, true)
    try out.write(content) finally out.close()
    if (fault == LosesAnswer) put(path, content, ifAbsent)
  }
}

private class Folder extends RawLocalFileSystem {
  var openedAsKnown = 0

  override def getUri: URI = URI.create("put:///")

  /** The statuses of its superclass ask for permissions, which exist only under `file:`. */
  override def listStatus(path: Path): Array[FileStatus] = super.listStatus(path).map { file =>
    new FileStatus(file.getLen, file.isDirectory, 1, file.getBlockSize, file.getModificationTime, file.getPath)
  }

  override protected def openFileWithOptions(
      path: Path, parameters: OpenFileParameters): CompletableFuture[FSDataInputStream] = {
    if (parameters.getStatus != null) openedAsKnown += 1
    super.openFileWithOptions(path, parameters)
  }
}

private class PutBuilder(fs: PuttingFileSystem, path: Path)
    extends FSDataOutputStreamBuilder[FSDataOutputStream, PutBuilder](fs, path) {

  override def getThisBuilder: PutBuilder = this

  override def build(): FSDataOutputStream = {
    if (!fs.isConditional && getMandatoryKeys.contains(PutBuilder.Condition)) {
      throw new IllegalArgumentException(s"unknown key ${PutBuilder.Condition}")
    }
    val ifAbsent = fs.isConditional && getOptions.getBoolean(PutBuilder.Condition, false)
    val bytes = new ByteArrayOutputStream {
      override def close(): Unit = fs.put(path, toByteArray, ifAbsent)
    }
    new FSDataOutputStream(bytes, null)
  }
}

private object PutBuilder {
  val Condition = "fs.option.create.conditional.overwrite"
}
