package org.millrace.file;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

/**
 * The user of this process, who owns the files that the process creates. Users are compared by number. Containers may
 * run as users without a name, and the lookup of a name may use a network.
 */
public final class User {

    /** Value of {@link #ID} if the user is unknown. The system assigns this number to no user. */
    public static final int UNKNOWN = -1;

    /** Number of this process's effective user. */
    public static final int ID = effective(User.class.getModule().isNativeAccessEnabled());

    private static final String UID = "uid";
    private static final String OWNER = "owner";
    private static final String STATUS_FIELD = "Uid:";

    private User() {}

    /**
     * Returns the effective user from the C library. Without native access, reads the user from the content of {@code
     * /proc/self/status}. The owner of that file is not sufficient: root owns the file if the process must not be
     * dumped.
     */
    static int effective(boolean nativeAccess) {
        if (nativeAccess) {
            return CFunction.find("geteuid").map(geteuid -> (int) geteuid.call()).orElse(UNKNOWN);
        }
        try {
            return parse(Files.readAllLines(Path.of("/proc/self/status")));
        } catch (IOException | RuntimeException noProc) {
            return UNKNOWN;
        }
    }

    /**
     * Returns the effective user from the lines of {@code /proc/self/status}. The line with the users contains the
     * numbers of the real, the effective, the saved and the file system user, in this order.
     */
    private static int parse(List<String> status) {
        return status.stream()
                .filter(line -> line.startsWith(STATUS_FIELD))
                .map(line -> Integer.parseUnsignedInt(line.split("\\s+")[2]))
                .findFirst()
                .orElse(UNKNOWN);
    }

    /**
     * Returns the number of the user who owns a file; null if the file system has no such numbers. If the file is a
     * symbolic link, returns the owner of the link.
     */
    public static @Nullable Integer ownerOf(Path file) throws IOException {
        try {
            return (Integer) Files.getAttribute(file, "unix:" + UID, LinkOption.NOFOLLOW_LINKS);
        } catch (UnsupportedOperationException | IllegalArgumentException noUnix) {
            return null;
        }
    }

    /**
     * Returns this process's user as an object of the JDK.
     *
     * @param made a file that this process has created
     * @throws IOException if the file belongs to another user because it was replaced
     */
    public static UserPrincipal principal(Path made) throws IOException {
        Map<String, Object> owner = Files.readAttributes(made, "unix:" + UID + "," + OWNER, LinkOption.NOFOLLOW_LINKS);
        if (!owner.get(UID).equals(ID)) {
            throw new IOException(made + " is a file of user " + text((int) owner.get(UID))
                    + ", and this process runs as user " + text(ID));
        }
        return (UserPrincipal) owner.get(OWNER);
    }

    /** Returns a user's number as text, for messages. */
    public static String text(int user) {
        return user == UNKNOWN ? "unknown" : Integer.toUnsignedString(user);
    }
}
