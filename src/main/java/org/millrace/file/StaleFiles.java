package org.millrace.file;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/**
 * Deletes files that would otherwise stay forever. These are the files that this process still has when it ends, and
 * files of killed processes. This process may end by SIGTERM, or by an exit that closes nothing. It may also end by
 * Ctrl-C, which a terminal sends to all processes of a run at the same time.
 */
public final class StaleFiles {

    private static final Logger LOG = LogManager.getLogger(StaleFiles.class);

    private static final Set<Path> DIRECTORIES = ConcurrentHashMap.newKeySet();

    static {
        try {
            Runtime.getRuntime().addShutdownHook(new Thread(StaleFiles::deleteOwn, "millrace-own-files"));
        } catch (IllegalStateException ending) {
            // The process is ending, so it cannot add a shutdown hook. Another process must delete the files that this
            // process still creates.
        }
    }

    private StaleFiles() {}

    /** Records that this process creates files in a directory. The process searches the directory when it ends. */
    public static void madeIn(Path directory) {
        DIRECTORIES.add(directory);
    }

    private static void deleteOwn() {
        if (ProcessIdentity.CURRENT.namespace() == 0) {
            return; // if the namespace is unknown, a process of another container may have this identity
        }
        for (Path directory : DIRECTORIES) {
            try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, FileName.ANY)) {
                for (Path file : files) {
                    FileName name = FileName.parse(file.getFileName().toString());
                    if (name != null && name.owner().equals(ProcessIdentity.CURRENT) && PrivateFile.isOurs(file)) {
                        Files.deleteIfExists(file);
                    }
                }
            } catch (IOException | DirectoryIteratorException left) {
                // The process is ending. The next process with a listener in the directory deletes the remaining files.
            }
        }
    }

    /**
     * Deletes the files of this process, and files of dead processes in the same directories. Called when this process
     * ends and does not run its exit handlers.
     */
    public static void leave() {
        deleteOwn();
        DIRECTORIES.forEach(StaleFiles::sweep);
    }

    /** Deletes files of this user in a directory if the processes that created them are provably dead. */
    public static void sweep(Path directory) {
        sweep(directory, ProcessIdentity::isProvablyDead);
    }

    /** Deletes files of this user in a directory if the caller's test states that the creating process is dead. */
    public static void sweep(Path directory, Predicate<ProcessIdentity> dead) {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, FileName.ANY)) {
            for (Path file : files) {
                sweepOne(file, dead);
            }
        } catch (IOException e) {
            LOG.warn("cannot look for stale files in {}: {}", directory, e.toString());
        }
    }

    private static void sweepOne(Path file, Predicate<ProcessIdentity> dead) {
        FileName name = FileName.parse(file.getFileName().toString());
        if (name == null || !dead.test(name.owner())) {
            return;
        }
        try {
            if (PrivateFile.isOurs(file) && Files.deleteIfExists(file)) {
                LOG.info("deleted {}, which {} left behind when it was killed", file, name.owner());
            }
        } catch (IOException e) {
            LOG.debug("{} is stale, and cannot be deleted", file, e);
        }
    }
}
