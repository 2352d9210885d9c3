package io.github.sparkckpt.engine.pages;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;

/** A channel whose reads and writes by position meet a fault first. */
final class StruckChannel extends FileChannel {

  /** The fault. */
  interface Fault {
    void meet(boolean write, ByteBuffer buffer, long position) throws IOException;
  }

  private final FileChannel inner;
  private final Fault fault;

  StruckChannel(FileChannel inner, Fault fault) {
    this.inner = inner;
    this.fault = fault;
  }

  @Override
  public int read(ByteBuffer to, long position) throws IOException {
    fault.meet(false, to, position);
    try {
      return inner.read(to, position);
    } catch (ClosedChannelException e) {
      close(); // by the interruption of a thread: whoever uses it looks here
      throw e;
    }
  }

  @Override
  public int write(ByteBuffer from, long position) throws IOException {
    fault.meet(true, from, position);
    try {
      return inner.write(from, position);
    } catch (ClosedChannelException e) {
      close();
      throw e;
    }
  }

  @Override
  protected void implCloseChannel() throws IOException {
    inner.close();
  }

  @Override
  public long size() throws IOException {
    return inner.size();
  }

  @Override
  public void force(boolean metaData) throws IOException {
    inner.force(metaData);
  }

  // The stores use none of the others.

  @Override
  public int read(ByteBuffer to) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long read(ByteBuffer[] to, int offset, int length) {
    throw new UnsupportedOperationException();
  }

  @Override
  public int write(ByteBuffer from) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long write(ByteBuffer[] from, int offset, int length) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long position() {
    throw new UnsupportedOperationException();
  }

  @Override
  public FileChannel position(long position) {
    throw new UnsupportedOperationException();
  }

  @Override
  public FileChannel truncate(long size) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long transferTo(long position, long count, WritableByteChannel to) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long transferFrom(ReadableByteChannel from, long position, long count) {
    throw new UnsupportedOperationException();
  }

  @Override
  public MappedByteBuffer map(MapMode mode, long position, long size) {
    throw new UnsupportedOperationException();
  }

  @Override
  public FileLock lock(long position, long size, boolean shared) {
    throw new UnsupportedOperationException();
  }

  @Override
  public FileLock tryLock(long position, long size, boolean shared) {
    throw new UnsupportedOperationException();
  }
}
