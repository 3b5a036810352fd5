package org.millrace.bench.soak;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * What this process holds.
 *
 * @param residentKib memory that it has of the machine
 * @param heapKib     of it, objects that are alive
 * @param descriptors files and sockets that are open
 * @param threads     that run, or wait
 */
record Holdings(long residentKib, long heapKib, int descriptors, int threads) {

    private static final Path STATUS = Path.of("/proc/self/status");
    private static final File DESCRIPTORS = new File("/proc/self/fd");
    /** What a JVM's own machinery may come to hold later than in the first round. */
    private static final long SLACK_KIB = 64 << 10;
    private static final int SLACK = 8;

    static Holdings now() {
        System.gc();
        try {
            long resident = Files.readAllLines(STATUS)
                    .stream()
                    .filter(line -> line.startsWith("VmRSS:"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                    .findFirst()
                    .orElseThrow();
            long heap = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
            String[] open = DESCRIPTORS.list();
            return new Holdings(resident, heap >> 10, open == null ? 0 : open.length,
                    ManagementFactory.getThreadMXBean().getThreadCount());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Whether this is no more than another, but for what a JVM does by itself. */
    boolean isFlatBeside(Holdings earlier) {
        return heapKib <= earlier.heapKib + SLACK_KIB / 4 && residentKib <= earlier.residentKib + SLACK_KIB
                && descriptors <= earlier.descriptors + SLACK && threads <= earlier.threads + SLACK;
    }

    @Override
    public String toString() {
        return residentKib / 1024 + " MiB resident, " + heapKib / 1024 + " MiB of objects, " + descriptors
                + " descriptors, " + threads + " threads";
    }
}
