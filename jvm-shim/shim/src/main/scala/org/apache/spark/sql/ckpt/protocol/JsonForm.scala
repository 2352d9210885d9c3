// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

import com.fasterxml.jackson.annotation.{JsonAutoDetect, JsonIgnoreProperties, JsonInclude, PropertyAccessor}
import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{DeserializationFeature, PropertyNamingStrategies}
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.module.scala.DefaultScalaModule

import org.apache.spark.sql.ckpt.common.CheckpointFailure

/**
 * JSON of a message, derived from its case class: an object with a field for each parameter, named in snake case. A
 * field that is None is absent. What a reader does not know it ignores; it takes the default of what is absent.
 */
private[protocol] final class JsonForm[A <: AnyRef](of: Class[A]) {
  private val reader = JsonForm.mapper.readerFor(of)
  private val writer = JsonForm.mapper.writerFor(of)

  def write(value: A): String = writer.writeValueAsString(value)

  /** @throws CheckpointFailure if a field has another type, or is absent and has no default */
  def read(message: Message): A = {
    val value = try reader.readValue[A](message.header) catch {
      case e: JsonProcessingException => throw Message.malformed(message.kind, e.getOriginalMessage)
    }
    if (value == null) throw Message.malformed(message.kind, "it is null")
    value
  }
}

private[protocol] object JsonForm {
  // Only parameters of case classes are fields in their bytecode. Their other members are no part of the message.
  private val mapper: JsonMapper = JsonMapper.builder()
    .addModule(DefaultScalaModule)
    .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
    .serializationInclusion(JsonInclude.Include.NON_ABSENT)
    .visibility(PropertyAccessor.GETTER, JsonAutoDetect.Visibility.NONE)
    .visibility(PropertyAccessor.IS_GETTER, JsonAutoDetect.Visibility.NONE)
    .visibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY)
    .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
    .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
    .enable(DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES)
    .build()
}

/** A message about a job, which is a column of the stream and not in the JSON. */
@JsonIgnoreProperties(Array("job"))
private[protocol] trait JobMessage {

  /** Run id of the query, or `standalone:<directory>`. */
  def job: String
}
