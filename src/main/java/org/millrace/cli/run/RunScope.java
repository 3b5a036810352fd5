package org.millrace.cli.run;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.file.PrivateFile;
import org.millrace.file.SharedDirectory;

/**
 * Resources that a run creates on the machine: the ranks, and a private directory for their rendezvous. At the end of
 * the run, the ranks are stopped and the directory is deleted, also after a failure or a signal.
 */
final class RunScope implements AutoCloseable {

    private static final String PREFIX = "millrace-perf-";
    /**
     * Name of a file that is locked as long as the run exists. The operating system releases the lock when the process
     * ends, even if it is killed, and other containers see the lock.
     */
    private static final String OWNER = "owner";

    private final Path directory;
    private final FileChannel owner;
    private final Thread hook = new Thread(this::clean, "perf-cleanup");
    private volatile @Nullable Ranks ranks;

    RunScope() {
        try {
            directory = newDirectory();
            owner = lock(directory);
            deleteLeftOvers(directory);
        } catch (IOException failure) {
            throw new MillraceException(
                    "no directory for the ranks to meet can be made in " + System.getProperty("java.io.tmpdir") + ": "
                            + failure + "; make room there or choose another with -Djava.io.tmpdir=DIR",
                    failure);
        }
        try {
            Runtime.getRuntime().addShutdownHook(hook);
        } catch (IllegalStateException shuttingDown) {
            delete(directory);
            throw new MillraceException("the run was interrupted", shuttingDown);
        }
    }

    /**
     * Creates a directory that only its owner can read. If the directory for temporary files is not writable, the new
     * directory lies in shared memory.
     */
    private static Path newDirectory() throws IOException {
        String name = PREFIX + ProcessHandle.current().pid() + "-";
        try {
            return Files.createTempDirectory(name);
        } catch (IOException readOnly) {
            if (!Files.isWritable(SharedDirectory.MEMORY)) {
                throw readOnly;
            }
            return Files.createTempDirectory(SharedDirectory.MEMORY, name);
        }
    }

    /**
     * Locks a file under a temporary name, and then renames it to {@link #OWNER}. A directory without this file is
     * therefore still being created.
     */
    private static FileChannel lock(Path directory) throws IOException {
        Path making = directory.resolve(OWNER + ".new");
        FileChannel channel = FileChannel.open(making, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        try {
            channel.lock();
            Files.move(making, directory.resolve(OWNER), StandardCopyOption.ATOMIC_MOVE);
            return channel;
        } catch (IOException failure) {
            channel.close();
            throw failure;
        }
    }

    /** Deletes the directories that killed runs of this user have left. */
    private static void deleteLeftOvers(Path own) {
        try (DirectoryStream<Path> all = Files.newDirectoryStream(own.getParent(), PREFIX + "*")) {
            for (Path each : all) {
                if (isLeftOver(each)) {
                    delete(each);
                }
            }
        } catch (IOException | DirectoryIteratorException unreadable) {
            // Errors are ignored, because this run can continue even if the directories of other runs remain.
        }
    }

    private static boolean isLeftOver(Path directory) {
        // directories of this process are excluded: a second channel's close would release the process's own lock
        boolean own = directory.getFileName().toString().startsWith(PREFIX + ProcessHandle.current().pid() + "-");
        try {
            if (own || !Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS) || !PrivateFile.isOurs(directory)) {
                return false;
            }
            try (FileChannel channel =
                    FileChannel.open(directory.resolve(OWNER), StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
                return channel.tryLock() != null;
            }
        } catch (IOException | OverlappingFileLockException notOurs) {
            return false;
        }
    }

    String rendezvous() {
        return "file:" + directory.resolve("rendezvous");
    }

    /** Adds ranks that must not outlive the run. */
    void owns(Ranks started) {
        ranks = started;
    }

    @Override
    public void close() {
        clean();
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException shuttingDown) {
            // The JVM is already shutting down, so the shutdown hook runs, too. The hook finds nothing to clean,
            // because this thread has cleaned already.
        }
    }

    private void clean() {
        if (ranks != null) {
            ranks.stop();
        }
        delete(directory);
        try {
            owner.close();
        } catch (IOException closed) {
            // Errors are ignored, because the end of the process releases the lock.
        }
    }

    private static void delete(Path directory) {
        List<Path> deepestFirst;
        try (Stream<Path> files = Files.walk(directory)) {
            deepestFirst = files.sorted(Comparator.reverseOrder()).toList();
        } catch (IOException | UncheckedIOException gone) {
            return; // the directory is already deleted
        }
        for (Path path : deepestFirst) {
            try {
                Files.deleteIfExists(path);
            } catch (IOException failure) {
                System.err.println("millrace: " + path + " is left behind: " + failure);
            }
        }
    }
}
