// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.apache.spark.sql.ckpt.common.Settings

/**
 * Choice of the Python that runs the side process: our own setting first, then PySpark's choice for the driver. The
 * process serves the whole application, so a session, such as that of a Connect client, does not overrule it.
 */
private[driver] object DriverPython {

  /**
   * @param settings    settings of the session
   * @param conf        a setting of the application, if set
   * @param environment environment of the driver
   */
  def choose(settings: Map[String, String], conf: String => Option[String], environment: Map[String, String]): String =
    conf(Settings.Python)
      .orElse(settings.get(Settings.Python))
      .orElse(conf("spark.pyspark.driver.python"))
      .orElse(conf("spark.pyspark.python"))
      .orElse(environment.get("PYSPARK_DRIVER_PYTHON").filter(runsModules))
      .orElse(environment.get("PYSPARK_PYTHON").filter(_.nonEmpty))
      .getOrElse("python3")

  /** In a notebook this variable names the notebook program, which runs no module for us. */
  private def runsModules(python: String): Boolean = {
    val program = python.split("[/\\\\]").last
    program.nonEmpty && !program.startsWith("jupyter") && !program.startsWith("ipython")
  }
}
