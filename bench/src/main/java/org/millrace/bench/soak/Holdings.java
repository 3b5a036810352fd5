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
 * Resources of this process.
 *
 * <p>
 * The resident memory alone is not conclusive. The collector chooses the size of Java's heap. glibc keeps freed memory
 * in up to eight arenas per core, with tens of megabytes each. So objects are counted after a collection, and the rest
 * after glibc has returned free memory. Except for the first arena, glibc does not return memory at the end of an
 * arena. With several arenas, memory outside of the heap varies by hundreds of megabytes and is not judged.
 * {@code MALLOC_ARENA_MAX=1} in the environment makes glibc use one arena.
 *
 * @param residentKib all resident memory, in KiB
 * @param objectsKib  live objects in Java's heap, in KiB
 * @param outsideKib  memory outside of Java's heap, in KiB: allocated memory, memory that glibc cannot return, code,
 *                    stacks, and mapped files
 * @param mappings    number of mapped address ranges
 * @param descriptors number of open files and sockets
 * @param threads     number of threads that run or wait
 */
record Holdings(long residentKib, long objectsKib, long outsideKib, long mappings, int descriptors, int threads) {

    private static final Path STATUS = Path.of("/proc/self/status");
    private static final Path MAPPINGS = Path.of("/proc/self/maps");
    private static final File DESCRIPTORS = new File("/proc/self/fd");
    private static final boolean ONE_ARENA = "1".equals(System.getenv("MALLOC_ARENA_MAX"));
    /** Memory that the JVM itself may allocate after the first rounds, in KiB. */
    private static final long SLACK_KIB = 64 << 10;
    private static final int SLACK = 8;
    /** Permitted growth of the mappings. Each ended thread may have left an arena with two or three mappings. */
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

    /** Makes glibc return freed memory, as {@code jcmd PID System.trim_native_heap} does. */
    private static void trim() {
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            server.invoke(new ObjectName("com.sun.management:type=DiagnosticCommand"), "systemTrimNativeHeap",
                    new Object[0], new String[0]);
        } catch (JMException e) {
            throw new IllegalStateException("a JDK for Linux with glibc is needed", e);
        }
    }

    /** Returns these resources with the memory outside of the heap of another measurement if that is less. */
    Holdings withLessOutside(Holdings other) {
        return new Holdings(residentKib, objectsKib, Math.min(outsideKib, other.outsideKib), mappings, descriptors,
                threads);
    }

    /** Returns whether these resources do not exceed earlier ones, except for the JVM's own variation. */
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
