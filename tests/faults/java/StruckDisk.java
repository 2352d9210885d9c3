package io.github.sparkckpt.engine.pages;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;

import io.github.sparkckpt.engine.compaction.HashMapSnapshot$;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.util.Progressable;

import org.apache.spark.ExceptionFailure;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.unsafe.Platform;

/**
 * Strikes files of a driver's JVM once, in the middle of an operation: those of state on the local disk, and those that
 * a background thread writes. `tests/faults/injection.py` does the same in Python.
 */
public final class StruckDisk extends SparkListener {
  private static final StruckDisk HERE = new StruckDisk();

  /** Set while a thread moves rows out of evicted pages, until its next write. */
  private static final ThreadLocal<Boolean> MOVES = ThreadLocal.withInitial(() -> false);

  private volatile Path folder;
  private String what;
  private String kind;
  private int left;

  /** Puts itself between the stores of this JVM and the disk. */
  public static void install(SparkContext context) throws Exception {
    LocalFile$.MODULE$.open_$eq((path, options) -> {
      FileChannel channel = open(path, options);
      boolean sorts = options.contains(StandardOpenOption.DELETE_ON_CLOSE);
      return new StruckChannel(
          channel, (write, buffer, at) -> HERE.meet(momentOf(write, sorts), path, channel, buffer, at));
    });
    Configuration conf = context.hadoopConfiguration();
    FileSystem local = FileSystem.get(URI.create("file:///"), conf);
    StruckFiles files = new StruckFiles();
    files.initialize(URI.create("file:///"), conf);
    var inner = FilterFileSystem.class.getDeclaredField("fs");
    inner.setAccessible(true);
    inner.set(local, files);
    context.addSparkListener(HERE);
  }

  /** Arms a fault: `left` moments pass before it strikes. The folder gets a mark, and the failures of tasks. */
  public static void arm(String folder, String what, String kind, int left) {
    synchronized (HERE) {
      HERE.what = what;
      HERE.kind = kind;
      HERE.left = left;
      HERE.folder = Path.of(folder);
    }
    if (what.equals("sort")) HashMapSnapshot$.MODULE$.minBuffer_$eq(256);
  }

  public static void disarm() {
    HERE.folder = null;
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    Path to = folder;
    if (to != null && end.reason() instanceof ExceptionFailure failure) {
      try {
        Files.writeString(
            to.resolve("failures"), failure.className() + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private static FileChannel open(Path path, scala.collection.immutable.Seq<?> options) {
    StandardOpenOption[] array = new StandardOpenOption[options.length()];
    for (int i = 0; i < array.length; i++) array[i] = (StandardOpenOption) options.apply(i);
    try {
      return FileChannel.open(path, array);
    } catch (IOException e) {
      Platform.throwException(e); // Scala declares no exceptions
      return null;
    }
  }

  private static String momentOf(boolean write, boolean sorts) {
    if (HERE.folder == null || (sorts && !write)) return null;
    if (sorts) return "sort";
    if (write) {
      boolean moves = MOVES.get();
      MOVES.set(false);
      return moves ? "move" : "evict";
    }
    boolean reclaims = Arrays.stream(new Throwable().getStackTrace())
        .anyMatch(frame -> frame.getMethodName().equals("compactEvicted"));
    if (reclaims) MOVES.set(true);
    return reclaims ? "reclaim" : TaskContext.get() != null ? "read" : null;
  }

  /** An operation is about to happen. */
  private void meet(String moment, Path path, FileChannel channel, ByteBuffer buffer, long at) throws IOException {
    String now = strikes(moment, path);
    if (now == null) return;
    switch (now) {
      case "ERROR" -> {
        if (moment.equals("read") || moment.equals("reclaim")) throw new IOException("Input/output error");
        fill(buffer);
      }
      case "TRUNCATED" -> {
        try (FileChannel other = FileChannel.open(path, StandardOpenOption.WRITE)) {
          other.truncate(0);
        }
      }
      case "DELETED" -> Files.delete(path);
      case "KILL_DRIVER" -> {
        if (channel != null && buffer.remaining() > 1 && !moment.equals("read") && !moment.equals("reclaim")) {
          channel.write(buffer.duplicate().limit(buffer.position() + buffer.remaining() / 2), at);
        }
        killDriver();
      }
      default -> throw new IllegalStateException(now);
    }
  }

  private synchronized String strikes(String moment, Path path) {
    if (folder == null || !what.equals(moment) || left-- > 0) return null;
    try {
      Files.writeString(folder.resolve("struck"), moment + " " + path, StandardOpenOption.CREATE_NEW);
    } catch (FileAlreadyExistsException e) {
      return null;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return kind;
  }

  /** Writes as to a full disk: the error is the kernel's. */
  private static void fill(ByteBuffer buffer) throws IOException {
    try (FileChannel full = FileChannel.open(Path.of("/dev/full"), StandardOpenOption.WRITE)) {
      full.write(buffer.duplicate());
    }
    throw new IllegalStateException("/dev/full took bytes");
  }

  /** Kills the whole process group with SIGKILL: Python, this JVM, and the side process. */
  private static void killDriver() throws IOException {
    new ProcessBuilder("sh", "-c", "kill -KILL 0").start();
    while (true) LockSupport.park();
  }

  /** State files that this JVM writes itself. */
  private static final class StruckFiles extends RawLocalFileSystem {
    @Override
    public FSDataOutputStream create(
        org.apache.hadoop.fs.Path file, boolean overwrite, int bufferSize, short replication, long blockSize,
        Progressable progress) throws IOException {
      FSDataOutputStream out = super.create(file, overwrite, bufferSize, replication, blockSize, progress);
      String name = file.getName();
      String moment = name.startsWith(".base-") ? "base" : name.startsWith(".deltas-") ? "merge" : null;
      if (moment == null || HERE.folder == null) return out;
      return new FSDataOutputStream(new StruckStream(out, moment, Path.of(file.toUri().getPath())), null);
    }
  }

  private static final class StruckStream extends FilterOutputStream {
    private final String moment;
    private final Path path;

    StruckStream(OutputStream out, String moment, Path path) {
      super(out);
      this.moment = moment;
      this.path = path;
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      int half = length / 2;
      out.write(bytes, offset, half);
      out.flush();
      HERE.meet(moment, path, null, ByteBuffer.wrap(bytes, offset, length), 0);
      out.write(bytes, offset + half, length - half);
    }
  }
}
