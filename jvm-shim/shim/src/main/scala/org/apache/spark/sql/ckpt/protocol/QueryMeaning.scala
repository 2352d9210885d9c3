// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

/**
 * What the state of a query means: what its columns are computed from. Texts of expressions go down to the columns of
 * the sources, as `0.v` for column `v` of source 0, or `clicks.v` of a source with that name, and leave out casts that
 * lose nothing.
 *
 * @param sources    the sources, in the order of the offset log
 * @param watermarks column and delay of each watermark
 */
private[ckpt] final case class QueryMeaning(
    sources: Seq[SourceMeaning],
    operators: Seq[OperatorMeaning],
    watermarks: Seq[String]) {

  def toJson: String = QueryMeaning.json.write(this)
}

private[ckpt] object QueryMeaning {
  private val json = new JsonForm(classOf[QueryMeaning])
}

/**
 * @param text      format and place of the source
 * @param directory number of its directory below `sources`: a source that is used twice has one
 * @param name      name that the query gives it
 */
private[ckpt] final case class SourceMeaning(text: String, directory: Int, name: Option[String] = None)

/**
 * @param detail    what else decides about the state: kind of a join, gap of session windows
 * @param keys      columns of the grouping key; of a join, of its left side
 * @param rightKeys of a join, those of the right side
 * @param sides     of a join, the conditions of the rows of each side
 * @param functions aggregate functions, in the order of their buffers
 */
private[ckpt] final case class OperatorMeaning(
    operatorId: Long,
    name: String,
    detail: Option[String],
    keys: Seq[KeyMeaning],
    rightKeys: Seq[KeyMeaning] = Nil,
    sides: Seq[String] = Nil,
    functions: Seq[FunctionMeaning] = Nil)

/** @param shown the expression as a user wrote it */
private[ckpt] final case class KeyMeaning(name: String, text: String, shown: String)

/**
 * @param shown   the function as a user wrote it
 * @param buffers names of its buffers in the state
 * @param initial its buffers before any input, as text; None where Spark cannot tell
 * @param merges  for each buffer the function that merges two of them; empty if there is none
 */
private[ckpt] final case class FunctionMeaning(
    text: String,
    shown: String,
    buffers: Seq[String],
    initial: Option[Seq[Option[String]]],
    merges: Seq[String])
