/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
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
