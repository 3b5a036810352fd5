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
 * Files that would stay for ever: this process's when it ends with them open, by Ctrl-C, which a terminal sends to all
 * processes of a run at once, by SIGTERM, or by an exit that closes nothing; and those that killed processes left
 * behind.
 */
public final class StaleFiles {

    private static final Logger LOG = LogManager.getLogger(StaleFiles.class);

    private static final Set<Path> DIRECTORIES = ConcurrentHashMap.newKeySet();

    static {
        try {
            Runtime.getRuntime().addShutdownHook(new Thread(StaleFiles::deleteOwn, "millrace-own-files"));
        } catch (IllegalStateException ending) {
            // Files that are made now are for another process to sweep.
        }
    }

    private StaleFiles() {}

    /** Notes that a file is made in a directory. */
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
                // The process ends; the next listener in the directory sweeps.
            }
        }
    }

    /** This process ends without its exit handlers: deletes its files, and what dead processes left beside them. */
    public static void leave() {
        deleteOwn();
        DIRECTORIES.forEach(StaleFiles::sweep);
    }

    /** Deletes those of our files whose process is provably dead. */
    public static void sweep(Path directory) {
        sweep(directory, ProcessIdentity::isProvablyDead);
    }

    /** The same, where it is known otherwise which processes are dead. */
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
