package org.millrace.file;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;

/**
 * Runs programs as users that are not root, which root alone can. They may read all files, as the class path may lie
 * where root alone does, and write none but their own.
 */
public final class OtherUser {

    /** Two of them; nobody has given them names. */
    public static final int FIRST = 471_101;
    public static final int SECOND = 471_102;

    private OtherUser() {}

    /** Before a command, has it run as a user. */
    public static List<String> as(int user) {
        return as(user, "+dac_read_search");
    }

    /** The same with capabilities, as setpriv writes them: who lacks one of them may not look at the process. */
    static List<String> as(int user, String capabilities) {
        return List.of("setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups",
                "--inh-caps=-all," + capabilities, "--ambient-caps=" + capabilities);
    }

    /** Skips a test that this process's user cannot make. */
    public static void assumePossible() throws Exception {
        assumeTrue(User.ID == 0, "it takes root to run a program as another user");
        OwnNamespace.assumePossible(as(FIRST));
    }

    /** Makes a directory in which every user makes files, as in {@code /tmp}, which others do not delete. */
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
