"""The JVM of a Spark session, as Python sees it: objects of the shim, and Hadoop's file systems."""
