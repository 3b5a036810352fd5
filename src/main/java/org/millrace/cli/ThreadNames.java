package org.millrace.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalInt;

/**
 * Names of this process's threads, native ones included, as Linux knows them: their first 15 characters. NCCL names its
 * own only with {@code NCCL_SET_THREAD_NAME=1}.
 */
final class ThreadNames {

    private static final Path TASKS = Path.of("/proc/self/task");
    private static final int LONGEST = 15;

    private ThreadNames() {}

    /**
     * Counts threads.
     *
     * @param prefix how their names begin; what is longer than Linux keeps is not compared
     * @return how many there are now; empty where names cannot be read
     */
    public static OptionalInt count(String prefix) {
        String kept = prefix.substring(0, Math.min(prefix.length(), LONGEST));
        int count = 0;
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
            for (Path task : tasks) {
                count += name(task).startsWith(kept) ? 1 : 0;
            }
            return OptionalInt.of(count);
        } catch (IOException | UncheckedIOException | DirectoryIteratorException unreadable) {
            return OptionalInt.empty();
        }
    }

    private static String name(Path task) {
        try {
            return Files.readString(task.resolve("comm"));
        } catch (IOException ended) {
            return ""; // between its listing and now
        }
    }
}
