package org.millrace.file;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;

/**
 * Runs programs as users other than root. Only root can start such programs. The programs may read all files, because
 * the class path may be readable only by root. They write only files of their own user.
 */
public final class OtherUser {

    /** Two user numbers without names. */
    public static final int FIRST = 471_101;
    public static final int SECOND = 471_102;

    private OtherUser() {}

    /** Returns a prefix for a command, so that the command runs as the given user. */
    public static List<String> as(int user) {
        return as(user, "+dac_read_search");
    }

    /**
     * Returns a prefix for a command, so that the command runs as the given user with capabilities, in setpriv's
     * format. A process without these capabilities cannot inspect the command's process.
     */
    static List<String> as(int user, String capabilities) {
        return List.of("setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups",
                "--inh-caps=-all," + capabilities, "--ambient-caps=" + capabilities);
    }

    /** Skips the calling test if this process's user cannot run programs as other users. */
    public static void assumePossible() throws Exception {
        assumeTrue(User.ID == 0, "it takes root to run a program as another user");
        OwnNamespace.assumePossible(as(FIRST));
    }

    /**
     * Creates a directory like {@code /tmp}: every user can create files in the directory, and other users cannot
     * delete these files.
     */
    public static Path openToAll(Path directory) throws IOException {
        Files.createDirectories(directory);
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxrwxrwx"));
        Files.setAttribute(directory, "unix:mode", 01777);
        for (Path above = directory.getParent(); !Files.getPosixFilePermissions(above)
                .containsAll(PosixFilePermissions.fromString("--x--x--x")); above = above.getParent()) {
            Files.setPosixFilePermissions(above, PosixFilePermissions.fromString("rwxr-xr-x"));
        }
        return directory;
    }
}
