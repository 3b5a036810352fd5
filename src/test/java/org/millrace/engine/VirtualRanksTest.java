package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.Communicator;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/** Ranks that are virtual threads of a JVM with one carrier. A waiting rank must release the carrier. */
@Tag("slow")
class VirtualRanksTest {

    private static final int OPERATIONS = 50;

    @TempDir
    Path directory;

    @Test
    void ranksAndTheirThreadsShareOneCarrier() throws Exception {
        List<String> command = List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED", "-Djdk.virtualThreadScheduler.parallelism=1",
                "-Djdk.virtualThreadScheduler.maxPoolSize=1", "-cp", System.getProperty("java.class.path"),
                VirtualRanksTest.class.getName(), directory.resolve("group").toString());
        Process process = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(new File(directory.toFile(), "output"))
                .start();
        try {
            assertTrue(process.waitFor(120, TimeUnit.SECONDS), "the ranks wait for each other");
            assertEquals(0, process.exitValue(), () -> output());
        } finally {
            process.destroyForcibly().waitFor();
        }
    }

    private String output() {
        try {
            return Files.readString(directory.resolve("output"));
        } catch (IOException e) {
            return e.toString();
        }
    }

    /**
     * First, three ranks run operations. Then two threads per rank run operations, and each thread has its own
     * communicator.
     */
    public static void main(String[] args) throws Exception {
        int size = 3;
        try (ExecutorService ranks = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<Void>> all = new ArrayList<>();
            for (int i = 0; i < size; i++) {
                int rank = i;
                all.add(ranks.submit(() -> {
                    try (Communicator group = Millrace.join("file:" + args[0], rank, size)) {
                        operate(group);
                        List<Future<?>> threads = new ArrayList<>();
                        for (int thread = 0; thread < 2; thread++) {
                            Communicator part = group.split(0, 0).orElseThrow();
                            threads.add(ranks.submit(() -> operate(part)));
                        }
                        for (Future<?> thread : threads) {
                            thread.get();
                        }
                    }
                    return null;
                }));
            }
            for (Future<Void> each : all) {
                each.get();
            }
        }
    }

    private static void operate(Communicator communicator) {
        for (int i = 0; i < OPERATIONS; i++) {
            float[] values = {1, i};
            communicator.allReduce(Operand.of(values), ReduceOp.SUM);
            if (values[1] != communicator.size() * i) {
                throw new IllegalStateException("wrong sum " + values[1]);
            }
        }
    }
}
