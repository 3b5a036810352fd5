package org.millrace.bootstrap;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.file.PrivateFile;

/**
 * Directory in which processes of one host decide. For each number, the first proposal becomes the decision. The files
 * stay after the end of the processes, because a stopped process may resume and ask at any later time.
 *
 * @param group text that distinguishes this group's decisions from other groups' decisions
 */
record DecisionPlace(Path directory, String group) {

    /**
     * Returns a text that is equal for two processes only if they see the same directory; empty if the directory does
     * not exist.
     */
    static String key(@Nullable Path directory) {
        try {
            return directory == null ? ""
                    : Machine.kernel() + Objects
                            .toString(Files.readAttributes(directory, BasicFileAttributes.class).fileKey(), "");
        } catch (IOException absent) {
            return "";
        }
    }

    /**
     * Returns the decision with a number. If there is none yet, the proposal becomes the decision.
     *
     * @throws MillraceException if the directory is not usable
     */
    byte[] decide(int number, byte[] proposal) {
        Path decision = file(number);
        try {
            Path own = Files.createTempFile(directory, ".millrace-decision-", ".tmp");
            try {
                Files.write(own, proposal);
                // A link is created with its content at once, and never replaces a file.
                Files.createLink(decision, own);
                return proposal;
            } catch (FileAlreadyExistsException decided) {
                if (!PrivateFile.isOurFile(decision)) {
                    throw new IOException(decision + " is not a file of this user", decided);
                }
                return Files.readAllBytes(decision);
            } finally {
                Files.deleteIfExists(own);
            }
        } catch (IOException | UnsupportedOperationException e) {
            throw new MillraceException("the ranks cannot decide in " + directory + " which of them continue: " + e
                    + "; the directory must exist, be writable and have hard links (MILLRACE_DECISION_DIR)", e);
        }
    }

    /** Returns the file of the decision with a number. It exists once the decision is made. */
    Path file(int number) {
        return directory.resolve("millrace-decision-" + group + '-' + number);
    }
}
