"""Side process of the driver JVM: reads messages from standard input, writes replies to standard output."""
