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
package org.apache.spark.sql.ckpt

import java.util.Locale
import java.util.regex.Pattern

import scala.util.matching.Regex

/**
 * Removal of credentials in URLs from texts for people, by the rules of `spark_ckpt/redaction.py`. Both sides test
 * `tests/redaction.json`.
 */
private[ckpt] object Redaction {
  private val Hidden = "***"

  private val Url = """([A-Za-z][A-Za-z0-9+.-]*)://([^\s'"<>]*)""".r
  private val Port = Pattern.compile(".*:[0-9]{0,5}", Pattern.DOTALL)
  private val ContainerSchemes = Set("abfs", "abfss", "wasb", "wasbs")

  private val Value = """=)[^\s&#'"<>]+"""
  private val OfStorage = "x-(?:amz|goog)-(?:signature|credential|security-token)|awsaccesskeyid|signature|sig"
  private val Anywhere = Pattern.compile(s"([?&](?:$OfStorage)$Value", Pattern.CASE_INSENSITIVE)
  private val Words = "token|secret|password|passwd|pwd|credential|signature|access[_-]?key|api[_-]?key"
  private val InUrl = Pattern.compile(
    s"([?&](?:[a-z0-9_.-]*(?:$Words)[a-z0-9_.-]*|auth|key)$Value", Pattern.CASE_INSENSITIVE)

  /** The text with `***` for the user and password of each URL, and for the secret parameters of a query. */
  def redacted(text: String): String =
    if (text == null) null
    else {
      val inUrls =
        if (!text.contains("://")) text
        else {
          val withoutUsers = Url.replaceAllIn(text, url => Regex.quoteReplacement(withoutUser(url)))
          InUrl.matcher(withoutUsers).replaceAll("$1" + Hidden)
        }
      Anywhere.matcher(inUrls).replaceAll("$1" + Hidden)
    }

  private def withoutUser(url: Regex.Match): String =
    endOfUser(url.group(1), url.group(2)).fold(url.matched) { end =>
      s"${url.group(1)}://$Hidden${url.group(2).substring(end)}"
    }

  /**
   * End of user and password, counted from `://`. An "@" behind the first slash belongs to the path, unless the text
   * before the slash has a colon and is no host with its port: a secret key may contain a slash.
   */
  private def endOfUser(scheme: String, rest: String): Option[Int] = {
    val body = rest.takeWhile(c => c != '?' && c != '#')
    val authority = body.takeWhile(_ != '/')
    val user = authority.lastIndexOf('@')
    if (user >= 0) {
      val isContainer = ContainerSchemes(scheme.toLowerCase(Locale.ROOT)) && !authority.substring(0, user).contains(':')
      if (isContainer) None else Some(user)
    } else if (authority.contains(':') && !authority.startsWith("[") && !Port.matcher(authority).matches()) {
      Some(body.lastIndexOf('@')).filter(_ >= 0)
    } else {
      None
    }
  }
}
