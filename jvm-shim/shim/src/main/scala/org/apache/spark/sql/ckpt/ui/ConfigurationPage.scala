// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.xml.{Node, Text}

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.ui.UIUtils

/** Every setting of a run, and what follows from them. */
private[ui] final class ConfigurationPage(parent: CheckpointTab)
    extends RunPage(parent, ConfigurationPage.Name, "Configuration of checkpoints") {

  override protected def about(request: HttpServletRequest, row: RunRow): Seq[Node] = row.start match {
    case None => Cells.nothing("The settings of this run are not known.")
    case Some(start) =>
      Cells.facts(
        "Location" -> Cells.long(start.location),
        "Owner" -> Owners.text(start.claim),
        "Key groups" -> Cells.number(start.maxParallelism),
        "Numbering of key groups" -> Cells.text(start.keyGroupFactors.mkString(" x ")),
        "Spark" -> Cells.text(start.sparkVersion),
        "spark-ckpt" -> Cells.text(start.version)) ++
        Cells.heading("Settings") ++
        UIUtils.listingTable(ConfigurationPage.Headers, line, start.settings.sortBy(_.key), id = Some("settings"))
  }

  private def line(setting: SettingInForce): Seq[Node] =
    <tr>
      <td>{setting.key}</td>
      <td>{Cells.long(setting.value)}</td>
      <td>{Text(if (setting.isSet) "set" else "default")}</td>
      <td>{Cells.long(setting.default)}</td>
    </tr>
}

private[ui] object ConfigurationPage {
  val Name = "configuration"
  private val Headers = Seq("Setting", "Value", "Origin", "Default")
}
