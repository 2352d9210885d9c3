// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.common

import java.util.Locale
import java.util.regex.Pattern

/**
 * Removal of credentials in URLs from texts for people, by the rules of `spark_ckpt/redaction.py`. Both sides test
 * `tests/redaction.json`. It takes time in proportion to the length of the text, whatever is in it.
 */
private[ckpt] object Redaction {
  private val Hidden = "***"
  private val Separator = "://"

  private val EndsUrl = Set('\'', '"', '<', '>')
  private val Port = Pattern.compile(".*:[0-9]{0,5}", Pattern.DOTALL)
  private val ContainerSchemes = Set("abfs", "abfss", "wasb", "wasbs")

  private val Parameter = Pattern.compile("[?&]([a-z0-9_.-]++)=(?=[^\\s&#'\"<>])", Pattern.CASE_INSENSITIVE)
  private val Value = Pattern.compile("[^\\s&#'\"<>]++")
  private val OfStorage = Pattern.compile(
    "x-(?:amz|goog)-(?:signature|credential|security-token)|awsaccesskeyid|signature|sig", Pattern.CASE_INSENSITIVE)
  private val Words = Pattern.compile(
    "token|secret|password|passwd|pwd|credential|signature|access[_-]?key|api[_-]?key|^(?:auth|key)\\z",
    Pattern.CASE_INSENSITIVE)

  /** The text with `***` for the user and password of each URL, and for the secret parameters of a query. */
  def redacted(text: String): String =
    if (text == null) null
    else {
      val hasUrl = text.contains(Separator)
      withoutParameters(if (hasUrl) withoutUsers(text) else text, hasUrl)
    }

  private def withoutUsers(text: String): String = {
    val out = new java.lang.StringBuilder(text.length)
    var copied = 0
    var at = 0
    var colon = text.indexOf(Separator)
    while (colon >= 0) {
      // A regular expression would look for the end of the scheme from each letter of a long word.
      var start = colon
      while (start > at && isOfScheme(text.charAt(start - 1))) start -= 1
      while (start < colon && !isLetter(text.charAt(start))) start += 1
      at = colon + Separator.length
      if (start < colon) {
        val from = at
        while (at < text.length && !endsUrl(text.charAt(at))) at += 1
        endOfUser(text.substring(start, colon), text.substring(from, at)).foreach { end =>
          out.append(text, copied, from).append(Hidden)
          copied = from + end
        }
      }
      colon = text.indexOf(Separator, at)
    }
    out.append(text, copied, text.length).toString
  }

  private def isLetter(c: Char): Boolean = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')

  private def isOfScheme(c: Char): Boolean = isLetter(c) || (c >= '0' && c <= '9') || c == '+' || c == '.' || c == '-'

  /** White space as in a regular expression. */
  private def endsUrl(c: Char): Boolean = EndsUrl(c) || c == ' ' || (c >= '\t' && c <= '\r')

  private def withoutParameters(text: String, hasUrl: Boolean): String = {
    val out = new java.lang.StringBuilder(text.length)
    val parameter = Parameter.matcher(text)
    var at = 0
    while (parameter.find(at)) {
      out.append(text, at, parameter.end)
      at = parameter.end
      val name = parameter.group(1)
      if (OfStorage.matcher(name).matches() || (hasUrl && Words.matcher(name).find())) {
        val value = Value.matcher(text)
        value.find(at) // the parameter has a value
        out.append(Hidden)
        at = value.end
      }
    }
    out.append(text, at, text.length).toString
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
