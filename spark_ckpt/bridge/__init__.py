"""The side process that the driver JVM starts: messages in on standard input, replies out on standard output."""
