package org.millrace.bench.soak;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * What this process holds.
 *
 * <p>
 * The memory that it has of the machine says little by itself: Java's heap is as large as the collector likes, and
 * glibc keeps what was freed, in up to eight arenas a core with tens of megabytes each. So objects are counted after a
 * collection, and the rest after glibc has given back what it can. That is not what is at the end of an arena, but for
 * the first: where there are several, memory outside of the heap goes up and down by hundreds of megabytes and is not
 * judged. {@code MALLOC_ARENA_MAX=1} in the environment has it use one.
 *
 * @param residentKib all memory that it has of the machine
 * @param objectsKib  of Java's heap, objects that are alive
 * @param outsideKib  memory outside of Java's heap: what was allocated and is not freed, what glibc cannot give back,
 *                    code, stacks, and files that are mapped
 * @param mappings    ranges of addresses that something is mapped to
 * @param descriptors files and sockets that are open
 * @param threads     that run, or wait
 */
record Holdings(long residentKib, long objectsKib, long outsideKib, long mappings, int descriptors, int threads) {

    private static final Path STATUS = Path.of("/proc/self/status");
    private static final Path MAPPINGS = Path.of("/proc/self/maps");
    private static final File DESCRIPTORS = new File("/proc/self/fd");
    private static final boolean ONE_ARENA = "1".equals(System.getenv("MALLOC_ARENA_MAX"));
    /** What a JVM's own machinery may come to hold later than in the first rounds. */
    private static final long SLACK_KIB = 64 << 10;
    private static final int SLACK = 8;
    /** Each thread that ever ran may have left an arena, of which each has two or three. */
    private static final int MAPPINGS_SLACK = 64;

    static Holdings now() {
        System.gc();
        try {
            long resident = resident();
            trim();
            long committed = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getCommitted() >> 10;
            long objects = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory() >> 10;
            String[] open = DESCRIPTORS.list();
            return new Holdings(resident, objects, resident() - committed, count(MAPPINGS),
                    open == null ? 0 : open.length, ManagementFactory.getThreadMXBean().getThreadCount());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static long resident() throws IOException {
        try (Stream<String> lines = Files.lines(STATUS)) {
            return lines.filter(line -> line.startsWith("VmRSS:"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                    .findFirst()
                    .orElseThrow();
        }
    }

    private static long count(Path file) throws IOException {
        try (Stream<String> lines = Files.lines(file)) {
            return lines.count();
        }
    }

    /** Has glibc give back what was freed, as {@code jcmd PID System.trim_native_heap} does. */
    private static void trim() {
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            server.invoke(new ObjectName("com.sun.management:type=DiagnosticCommand"), "systemTrimNativeHeap",
                    new Object[0], new String[0]);
        } catch (JMException e) {
            throw new IllegalStateException("a JDK for Linux with glibc is needed", e);
        }
    }

    /** This, with the memory outside of the heap that another held if that was less. */
    Holdings withLessOutside(Holdings other) {
        return new Holdings(residentKib, objectsKib, Math.min(outsideKib, other.outsideKib), mappings, descriptors,
                threads);
    }

    /** Whether this is no more than another, but for what a JVM does by itself. */
    boolean isFlatBeside(Holdings earlier) {
        return objectsKib <= earlier.objectsKib + SLACK_KIB / 4
                && (!ONE_ARENA || outsideKib <= earlier.outsideKib + SLACK_KIB)
                && mappings <= earlier.mappings + MAPPINGS_SLACK && descriptors <= earlier.descriptors + SLACK
                && threads <= earlier.threads + SLACK;
    }

    @Override
    public String toString() {
        return residentKib / 1024 + " MiB resident, " + objectsKib / 1024 + " MiB of objects, " + outsideKib / 1024
                + " MiB outside of the heap, " + mappings + " mappings, " + descriptors + " descriptors, " + threads
                + " threads";
    }
}
