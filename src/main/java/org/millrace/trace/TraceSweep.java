package org.millrace.trace;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.logging.log4j.LogManager;
import org.millrace.file.FileName;
import org.millrace.file.PrivateFile;
import org.millrace.file.ProcessIdentity;
import org.millrace.file.StaleFiles;

/**
 * Deletes traces. A trace is deleted when its process ends, if the process closed everything and nothing failed.
 * Otherwise the trace stays for later examination. A later process deletes traces that are an hour old, and the oldest
 * traces if there are too many.
 */
final class TraceSweep {

    public static final String GLOB = "millrace-*." + FileName.TRACE;

    private static final Duration KEPT = Duration.ofHours(1);
    /**
     * Maximum size of the traces of dead processes, in bytes. These traces occupy memory that living processes may
     * need.
     */
    private static final long MAX_BYTES = 16 << 20;

    private record DeadTrace(Path path, long diedMillis, long bytes) {
    }

    private TraceSweep() {}

    /**
     * Returns whether the process that created a trace is certainly dead; false in case of doubt. The trace's name
     * identifies this process.
     */
    public static boolean isOwnerDead(Path file, ProcessIdentity owner) {
        return owner.isOfThisNamespace() ? owner.isProvablyDead() : wasLocked(file) && OwnerLock.isFree(file);
    }

    private static boolean wasLocked(Path file) {
        try {
            return PrivateFile.isOurFile(file) && readLocked(file);
        } catch (IOException notOurs) {
            return false;
        }
    }

    private static boolean readLocked(Path file) throws IOException {
        ByteBuffer header = ByteBuffer.allocate(TraceLayout.HOST.offset()).order(ByteOrder.LITTLE_ENDIAN);
        try (FileChannel channel = FileChannel.open(file, Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS))) {
            return channel.read(header) == header.capacity()
                    && header.getLong(TraceLayout.MAGIC_OFFSET) == TraceLayout.MAGIC
                    && header.getInt(TraceLayout.LOCKED_OFFSET) == 1;
        }
    }

    /** Returns the number of this user's living processes with a trace in a directory, as far as can be determined. */
    static int living(Path directory) {
        Set<ProcessIdentity> living = new HashSet<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, GLOB)) {
            for (Path file : files) {
                FileName name = FileName.parse(file.getFileName().toString());
                if (name != null && isTrace(file) && !isOwnerDead(file, name.owner())) {
                    living.add(name.owner());
                }
            }
        } catch (IOException | DirectoryIteratorException e) {
            LogManager.getLogger(TraceSweep.class).debug("cannot look for traces in {}", directory, e);
        }
        return living.size();
    }

    private static boolean isTrace(Path file) {
        try {
            return PrivateFile.isOurFile(file);
        } catch (IOException gone) {
            return false;
        }
    }

    static void atExit(ProcessTrace trace) {
        try {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> leave(trace), "millrace-own-trace"));
        } catch (IllegalStateException ending) {
            // The JVM already shuts down, so this process runs no hook. Another process deletes the trace later.
        }
    }

    private static void leave(ProcessTrace trace) {
        try {
            if (trace.isUneventful()) {
                Files.deleteIfExists(trace.path());
            } else {
                trace.touch();
            }
        } catch (IOException left) {
            // The trace stays after this error. Another process deletes it later.
        }
    }

    /**
     * Deletes this user's traces of processes that died long ago, and the oldest traces if there are many. If a dead
     * process belongs to another PID namespace, this method also deletes the process's other files immediately, because
     * only the trace proves the process's death.
     */
    public static void sweep(Path directory) {
        sweep(directory, System.currentTimeMillis());
    }

    static void sweep(Path directory, long nowMillis) {
        List<DeadTrace> dead = new ArrayList<>();
        Set<ProcessIdentity> elsewhere = new HashSet<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, GLOB)) {
            for (Path file : files) {
                FileName name = FileName.parse(file.getFileName().toString());
                if (name != null && name.kind().equals(FileName.TRACE) && PrivateFile.isOurFile(file)
                        && isOwnerDead(file, name.owner())) {
                    dead.add(new DeadTrace(file, Files.getLastModifiedTime(file).toMillis(), Files.size(file)));
                    if (!name.owner().isOfThisNamespace()) {
                        elsewhere.add(name.owner());
                    }
                }
            }
        } catch (IOException | DirectoryIteratorException e) {
            LogManager.getLogger(TraceSweep.class).debug("cannot look for old traces in {}", directory, e);
        }
        if (!elsewhere.isEmpty()) {
            StaleFiles.sweep(directory, elsewhere::contains);
        }
        dead.sort(Comparator.comparingLong(DeadTrace::diedMillis).reversed());
        long bytes = 0;
        for (DeadTrace each : dead) {
            bytes += each.bytes;
            if (nowMillis - each.diedMillis > KEPT.toMillis() || bytes > MAX_BYTES) {
                try {
                    Files.deleteIfExists(each.path);
                } catch (IOException e) {
                    LogManager.getLogger(TraceSweep.class).debug("{} cannot be deleted", each.path, e);
                }
            }
        }
    }
}
