package org.millrace.cli.launch;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/**
 * What a run leaves on the machine, and takes away again however it ends: a private directory where ranks meet, and the
 * ranks.
 */
public final class RunScope implements AutoCloseable {

    private final Path directory;
    private final Thread hook = new Thread(this::clean, "perf-cleanup");
    private volatile @Nullable Ranks ranks;

    /**
     * A new scope.
     *
     * @throws MillraceException if no directory can be made, or the process is ending
     */
    public RunScope() {
        try {
            // readable by its owner only
            directory = Files.createTempDirectory("millrace-perf-" + ProcessHandle.current().pid() + "-");
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
     * Where the ranks meet.
     *
     * @return a rendezvous
     */
    public String rendezvous() {
        return "file:" + directory.resolve("rendezvous");
    }

    /**
     * Ranks that must not outlive the run.
     *
     * @param started the ranks, in place of those that were named before
     */
    public void owns(Ranks started) {
        ranks = started;
    }

    @Override
    public void close() {
        clean();
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException shuttingDown) {
            // then the hook cleans too, which does no harm
        }
    }

    private void clean() {
        if (ranks != null) {
            ranks.stop();
        }
        delete(directory);
    }

    private static void delete(Path directory) {
        List<Path> deepestFirst;
        try (Stream<Path> files = Files.walk(directory)) {
            deepestFirst = files.sorted(Comparator.reverseOrder()).toList();
        } catch (IOException | UncheckedIOException gone) {
            return; // deleted already
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
