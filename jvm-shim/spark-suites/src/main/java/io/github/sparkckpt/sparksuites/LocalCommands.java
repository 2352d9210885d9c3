// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.sparksuites;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;

/**
 * {@code chmod} and {@code readlink} without a process. Hadoop's local file system starts one for each file of a
 * checkpoint where it has no native library, and that takes half of the time of some suites.
 */
public final class LocalCommands {
    private LocalCommands() {}

    /** The output of the command, or null if a process is to run it. */
    public static String run(String[] command) {
        try {
            if (command.length == 2 && command[0].equals("readlink")) {
                Path path = Path.of(command[1]);
                return Files.isSymbolicLink(path) ? Files.readSymbolicLink(path).toString() : "";
            }
            if (command.length == 3 && command[0].equals("chmod") && command[1].matches("0?[0-7]{3}")) {
                Files.setPosixFilePermissions(Path.of(command[2]), permissions(Integer.parseInt(command[1], 8)));
                return "";
            }
            return null;
        } catch (IOException e) {
            return null; // the process says what is wrong
        }
    }

    /** The permissions are declared from the highest bit (read by the owner) to the lowest. */
    private static Set<PosixFilePermission> permissions(int mode) {
        Set<PosixFilePermission> set = EnumSet.noneOf(PosixFilePermission.class);
        for (PosixFilePermission permission : PosixFilePermission.values()) {
            if ((mode >> (8 - permission.ordinal()) & 1) == 1) {
                set.add(permission);
            }
        }
        return set;
    }
}
