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
 * The user as whom this process acts, who owns the files that it makes. Users are compared by number: containers run
 * some that have no name, and a name may be looked up over a network.
 */
public final class User {

    /** What {@link #ID} is where nothing tells it; the system gives it to nobody. */
    public static final int UNKNOWN = -1;

    /** This process's effective user. */
    public static final int ID = effective(User.class.getModule().isNativeAccessEnabled());

    private static final String UID = "uid";
    private static final String OWNER = "owner";
    private static final String STATUS_FIELD = "Uid:";

    private User() {}

    /**
     * Asks the C library; where native access is not granted, reads it in {@code /proc}: in the text of a file, as the
     * owner of the files there is root's for a process that must not be dumped.
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

    /** The second number behind the name: real, effective, saved, of files. */
    private static int parse(List<String> status) {
        return status.stream()
                .filter(line -> line.startsWith(STATUS_FIELD))
                .map(line -> Integer.parseUnsignedInt(line.split("\\s+")[2]))
                .findFirst()
                .orElse(UNKNOWN);
    }

    /** The user who owns a file; null where files have none. A link is not followed. */
    public static @Nullable Integer ownerOf(Path file) throws IOException {
        try {
            return (Integer) Files.getAttribute(file, "unix:" + UID, LinkOption.NOFOLLOW_LINKS);
        } catch (UnsupportedOperationException | IllegalArgumentException noUnix) {
            return null;
        }
    }

    /**
     * This process's user as the JDK has it.
     *
     * @param made a file that this process has made
     * @throws IOException if it is another user's: it was replaced
     */
    public static UserPrincipal principal(Path made) throws IOException {
        Map<String, Object> owner = Files.readAttributes(made, "unix:" + UID + "," + OWNER, LinkOption.NOFOLLOW_LINKS);
        if (!owner.get(UID).equals(ID)) {
            throw new IOException(made + " is a file of user " + text((int) owner.get(UID))
                    + ", and this process runs as user " + text(ID));
        }
        return (UserPrincipal) owner.get(OWNER);
    }

    /** For messages. */
    public static String text(int user) {
        return user == UNKNOWN ? "unknown" : Integer.toUnsignedString(user);
    }
}
