package org.millrace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Ranks as threads of this JVM. */
final class LocalRanks {

    /** What one rank does. */
    interface Body {
        void run(int rank) throws Throwable;
    }

    private LocalRanks() {}

    static Path meetingPlace() {
        try {
            return Files.createTempDirectory("millrace-local");
        } catch (IOException e) {
            throw new MillraceException("ranks of one JVM meet in a file, and there is no place for one: " + e, e);
        }
    }

    static void forget(Path directory) {
        try {
            Files.deleteIfExists(directory.resolve("group"));
            Files.deleteIfExists(directory);
        } catch (IOException left) {
            directory.toFile().deleteOnExit();
        }
    }

    /** Returns what was thrown, the first first. If this thread is interrupted, so are the ranks. */
    static List<Throwable> call(int ranks, Body body) {
        List<Throwable> thrown = Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            int number = rank;
            threads.add(Thread.ofPlatform().name("rank-" + rank).start(() -> {
                try {
                    body.run(number);
                } catch (Throwable failure) {
                    thrown.add(failure);
                }
            }));
        }
        boolean interrupted = false;
        for (Thread thread : threads) {
            while (thread.isAlive()) {
                try {
                    thread.join();
                } catch (InterruptedException asked) {
                    interrupted = true;
                    threads.forEach(Thread::interrupt);
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return new ArrayList<>(thrown);
    }
}
