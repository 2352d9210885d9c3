// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8

import scala.xml.Node

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.ui.{PagedDataSource, PagedTable}

/**
 * A column of a table.
 *
 * @param order None if the table cannot be sorted by it
 */
private[ui] final case class Column[T](
    name: String,
    cell: T => Seq[Node],
    order: Option[Ordering[T]],
    tooltip: Option[String])

/** Columns of a table with rows of one type. */
private[ui] final class Columns[T] {
  def sorted[S](name: String, cell: T => Seq[Node], key: T => S, tooltip: Option[String] = None)(implicit
      order: Ordering[S]): Column[T] = Column(name, cell, Some(Ordering.by(key)), tooltip)

  def unsorted(name: String, cell: T => Seq[Node]): Column[T] = Column(name, cell, None, None)
}

/**
 * A table of Spark's UI with pages, sorted by the server.
 *
 * @param tag         name of the table in the parameters of the request
 * @param path        address of the page, with its own parameters
 * @param defaultSort name of the column by which the table is sorted at first, descending
 */
private[ui] final class StatusTable[T](
    request: HttpServletRequest,
    tag: String,
    path: String,
    rows: Seq[T],
    columns: Seq[Column[T]],
    defaultSort: String)
    extends PagedTable[T] {

  private val (sortColumn, isDescending, pageSize) = getTableParameters(request, tag, defaultSort)
  private val headerInfo = columns.map(column => (column.name, column.order.isDefined, column.tooltip))
  isSortColumnValid(headerInfo, sortColumn)
  private val sorting = s"&$tag.sort=${URLEncoder.encode(sortColumn, UTF_8)}&$tag.desc=$isDescending"

  override def tableId: String = s"$tag-table"
  override def tableCssClass: String =
    "table table-bordered table-sm table-striped table-head-clickable table-cell-width-limited"
  override def pageSizeFormField: String = s"$tag.pageSize"
  override def pageNumberFormField: String = s"$tag.page"
  override def pageLink(page: Int): String =
    s"$path$sorting&$pageNumberFormField=$page&$pageSizeFormField=$pageSize#$tag"
  override def goButtonFormPath: String = s"$path$sorting#$tag"
  override def headers: Seq[Node] = headerRow(headerInfo, isDescending, pageSize, sortColumn, path, tag, tag)
  override def row(row: T): Seq[Node] = <tr>{columns.map(column => <td>{column.cell(row)}</td>)}</tr>

  override def dataSource: PagedDataSource[T] = {
    val ascending = columns.find(_.name == sortColumn).flatMap(_.order).fold(rows)(order => rows.sorted(order))
    val sorted = if (isDescending) ascending.reverse else ascending
    new PagedDataSource[T](pageSize) {
      override protected def dataSize: Int = sorted.size
      override protected def sliceData(from: Int, to: Int): Seq[T] = sorted.slice(from, to)
    }
  }
}

private[ui] object StatusTable {

  /** The page of a table that the request asks for; a message if its parameters are invalid. */
  def render[T](
      request: HttpServletRequest,
      tag: String,
      path: String,
      rows: Seq[T],
      columns: Seq[Column[T]],
      defaultSort: String): Seq[Node] =
    try {
      val page = Option(request.getParameter(s"$tag.page")).fold(1)(_.toInt)
      val table = new StatusTable(request, tag, path, rows, columns, defaultSort)
      <div id={tag} class="table-responsive">{table.table(page)}</div>
    } catch {
      case e: IllegalArgumentException =>
        <div class="alert alert-error" id={tag}>The table cannot be shown: {String.valueOf(e.getMessage)}</div>
    }
}
