package com.example.millrace;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Runs the ranks of an example as threads of one process. */
final class Ranks {

    /** Program of one rank. */
    interface Rank {
        void run(String rendezvous, int rank, int size) throws Exception;
    }

    private Ranks() {}

    static void run(int size, Rank each) throws Exception {
        Path directory = Files.createTempDirectory("millrace-example");
        String rendezvous = "file:" + directory.resolve("group");
        try (ExecutorService threads = Executors.newFixedThreadPool(size)) {
            List<Future<?>> ends = new ArrayList<>();
            for (int rank = 0; rank < size; rank++) {
                int number = rank;
                ends.add(threads.submit(() -> {
                    each.run(rendezvous, number, size);
                    return null;
                }));
            }
            for (Future<?> end : ends) {
                end.get();
            }
        } finally {
            Files.deleteIfExists(directory.resolve("group"));
            Files.deleteIfExists(directory);
        }
    }
}
