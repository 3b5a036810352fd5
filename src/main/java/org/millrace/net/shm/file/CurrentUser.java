package org.millrace.net.shm.file;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;

/**
 * The user whose process this is: the owner of what it makes. A look-up by name would fail in containers, which run
 * users without one.
 */
public final class CurrentUser {

    public static final UserPrincipal PRINCIPAL = ownerOfATemporaryFile();

    private CurrentUser() {}

    private static UserPrincipal ownerOfATemporaryFile() {
        try {
            Path file = Files.createTempFile("millrace", null);
            try {
                return Files.getOwner(file);
            } finally {
                Files.delete(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("cannot make a file in " + System.getProperty("java.io.tmpdir")
                    + ", by which to know the user: set java.io.tmpdir", e);
        }
    }

    /** Whether a file is this user's own. */
    public static boolean owns(Path file) throws IOException {
        return Files.getOwner(file, LinkOption.NOFOLLOW_LINKS).equals(PRINCIPAL);
    }
}
