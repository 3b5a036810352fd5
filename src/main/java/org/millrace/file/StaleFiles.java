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
 * Deletes files that would otherwise stay forever. Some are this process's own files that are open when it ends. Such
 * an end is Ctrl-C, which a terminal sends to all processes of a run at once, SIGTERM, or an exit that closes nothing.
 * Others were left by killed processes.
 */
public final class StaleFiles {

    private static final Logger LOG = LogManager.getLogger(StaleFiles.class);

    private static final Set<Path> DIRECTORIES = ConcurrentHashMap.newKeySet();

    static {
        try {
            Runtime.getRuntime().addShutdownHook(new Thread(StaleFiles::deleteOwn, "millrace-own-files"));
        } catch (IllegalStateException ending) {
            // Files that are created now must be deleted by another process.
        }
    }

    private StaleFiles() {}

    /** Records that a file is created in a directory. */
    public static void madeIn(Path directory) {
        DIRECTORIES.add(directory);
    }

    private static void deleteOwn() {
        if (ProcessIdentity.CURRENT.namespace() == 0) {
            return; // a process of another container may have the same name
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
                // The process ends. The next listener in the directory deletes the remaining files.
            }
        }
    }

    /**
     * Called when this process ends without its exit handlers. Deletes its files, and files of dead processes in the
     * same directories.
     */
    public static void leave() {
        deleteOwn();
        DIRECTORIES.forEach(StaleFiles::sweep);
    }

    /** Deletes our files of processes that are provably dead. */
    public static void sweep(Path directory) {
        sweep(directory, ProcessIdentity::isProvablyDead);
    }

    /** Does the same with a caller's knowledge of the dead processes. */
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
