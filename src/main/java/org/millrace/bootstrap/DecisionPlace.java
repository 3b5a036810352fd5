package org.millrace.bootstrap;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.MillraceException;
import org.millrace.file.PrivateFile;
import org.millrace.file.User;

/**
 * Place at which processes of one user on one host make common decisions. Decisions are numbered. For each number, the
 * first proposal becomes the decision, and a file keeps this decision. The files stay after the end of the processes,
 * because a stopped process may resume and ask for a decision at any later time. The first decision creates a private
 * subdirectory for the files.
 *
 * @param group text that distinguishes this group's decisions from other groups' decisions
 */
record DecisionPlace(Path directory, String group) {

    private static final Logger LOG = LogManager.getLogger(DecisionPlace.class);
    private static final int ROOT = 0;
    private static final String PRIVATE = "millrace-decisions";

    /**
     * Directory of the place.
     *
     * @param isRequired whether a setting selects the directory. If no setting selects it and the directory is not
     *                   usable, a majority decides
     */
    record Directory(Path directory, boolean isRequired) {

        /**
         * Returns a text that is equal for two processes only if they have the same user and see the same directory;
         * empty if the directory is not usable and not required.
         *
         * @throws MillraceException if the directory is not usable, and is required
         */
        String key() {
            try {
                check(directory);
                return Machine.kernel() + Files.readAttributes(directory, BasicFileAttributes.class).fileKey()
                        + User.text(User.ID);
            } catch (IOException | UnsupportedOperationException e) {
                MillraceException why = unusable(directory, e);
                if (isRequired) {
                    throw why;
                }
                LOG.info("After a loss, only a majority of the ranks can continue: {}", why.getMessage());
                return "";
            }
        }
    }

    /**
     * Checks that this user can create and link files in a directory, and that no other user can delete these files.
     * Also checks the private subdirectory if it exists. If other users can create files in the directory, this method
     * creates the subdirectory, so that no other user creates it.
     */
    private static void check(Path directory) throws IOException {
        int owner = (int) Files.getAttribute(directory, "unix:uid");
        int mode = (int) Files.getAttribute(directory, "unix:mode");
        // In a directory with mode 1002, all users can create files, and only their owners can delete them.
        if (owner != User.ID && owner != ROOT || (mode & 01002) == 0002) {
            throw new IOException("other users can delete files in it: its owner is user " + User.text(owner)
                    + ", its mode " + Integer.toOctalString(mode & 07777));
        }
        if ((mode & 0002) != 0 || Files.exists(privateIn(directory), LinkOption.NOFOLLOW_LINKS)) {
            PrivateFile.directory(directory, PRIVATE);
        }
        Path probe = Files.createTempFile(directory, ".millrace-", ".tmp");
        Path link = Path.of(probe + ".link");
        try {
            Files.createLink(link, probe);
            Files.delete(link);
        } finally {
            Files.delete(probe);
        }
    }

    private static MillraceException unusable(Path directory, Exception e) {
        return new MillraceException("the ranks cannot decide in " + directory + " which of them continue: " + e
                + "; choose a directory of the ranks' user in which this user can create files and hard links, and other"
                + " users cannot (MILLRACE_DECISION_DIR)", e);
    }

    /**
     * Returns the decision with the given number. If no decision has this number yet, the proposal becomes the
     * decision.
     *
     * @throws MillraceException if the directory is not usable
     */
    byte[] decide(int number, byte[] proposal) {
        try {
            check(directory);
            if (isDecided(number)) {
                return Files.readAllBytes(file(number)); // this read needs no space on the disk
            }
            Path own = Files.createTempFile(PrivateFile.directory(directory, PRIVATE), ".", ".tmp");
            Path decision = file(number);
            try {
                Files.write(own, proposal);
                // One step creates the link with its content, and never replaces a file.
                Files.createLink(decision, own);
                return proposal;
            } catch (FileAlreadyExistsException decided) {
                return Files.readAllBytes(decision);
            } finally {
                Files.deleteIfExists(own);
            }
        } catch (IOException | UnsupportedOperationException e) {
            throw unusable(directory, e);
        }
    }

    boolean isDecided(int number) {
        return Files.exists(file(number), LinkOption.NOFOLLOW_LINKS);
    }

    private Path file(int number) {
        return privateIn(directory).resolve(group + '-' + number);
    }

    private static Path privateIn(Path directory) {
        return directory.resolve(PRIVATE + "-" + User.text(User.ID));
    }
}
