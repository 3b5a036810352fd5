package org.millrace.bench.access;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.PinnedMemory;
import org.millrace.cuda.PinnedMemory.Flag;

/**
 * Memory that the accesses in this JVM use. One JVM measures one kind of memory, so the memory is a constant for the
 * compiler. The loops therefore contain only those checks that the language requires.
 */
public final class LineMemory {

    /**
     * Size in bytes. The eight words at the beginning are flags. The words at {@link #DATA} are data. Another thread,
     * for contention, accesses one of the three lines from the flags on.
     */
    public static final long BYTES = 512;
    private static final long PAGE = 4096;
    /** Offset of the data. */
    static final long DATA = 256;
    /** Offset at which a poster polls for the other side's answer. */
    static final long POLLED = DATA + 64;

    private static VarHandle chosen;

    private LineMemory() {}

    /**
     * Sets the memory before the first access.
     *
     * @param segment {@link #BYTES} bytes of native memory, aligned to the same number
     */
    public static void choose(MemorySegment segment) {
        chosen = MethodHandles.insertCoordinates(ValueLayout.JAVA_LONG.varHandle(), 0,
                segment.asSlice(0, BYTES, BYTES));
    }

    /** Sets an array on the heap as the memory, before the first access. */
    public static void chooseArray() {
        try {
            MethodHandle index = MethodHandles.lookup()
                    .findStatic(LineMemory.class, "index", MethodType.methodType(int.class, long.class));
            chosen = MethodHandles.filterCoordinates(
                    MethodHandles.insertCoordinates(MethodHandles.arrayElementVarHandle(long[].class), 0,
                            new long[(int) BYTES / Long.BYTES]),
                    0, index);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static int index(long offset) {
        return (int) (offset >> 3);
    }

    /**
     * Allocates a page.
     *
     * @param kind {@code native}, {@code mapped} (a file of shared memory, as two processes map it), or memory of
     *             {@link #pinned}
     * @return the page, never freed
     */
    public static MemorySegment allocate(String kind) {
        if (!kind.equals("mapped")) {
            return kind.equals("native") ? Arena.global().allocate(PAGE, PAGE) : pinned(kind).host();
        }
        try {
            Path file = sharedFile();
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                return channel.map(MapMode.READ_WRITE, 0, PAGE, Arena.global());
            } finally {
                Files.delete(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("no file can be mapped", e);
        }
    }

    /**
     * Allocates a page that the host shares with GPU 0, which must be current on the calling thread.
     *
     * @param kind {@code pinned} or {@code write-combined}
     * @return the page, never freed
     */
    public static PinnedMemory pinned(String kind) {
        List<Flag> flags = switch (kind) {
            case "pinned" -> List.of(Flag.MAPPED, Flag.PORTABLE);
            case "write-combined" -> List.of(Flag.MAPPED, Flag.PORTABLE, Flag.WRITE_COMBINED);
            default -> throw new IllegalArgumentException("there is no memory of the kind " + kind);
        };
        return PinnedMemory.allocate(CudaRuntime.load().device(0), PAGE, Arena.global(), flags.toArray(Flag[]::new));
    }

    /**
     * Creates an empty file in shared memory, or in a directory of temporary files.
     *
     * @return the file
     * @throws IOException if no file can be created
     */
    public static Path sharedFile() throws IOException {
        Path shared = Path.of("/dev/shm");
        return Files.createTempFile(Files.isWritable(shared) ? shared : Path.of(System.getProperty("java.io.tmpdir")),
                "millrace-bench", null);
    }

    static VarHandle chosen() {
        if (chosen == null) {
            throw new IllegalStateException("no memory was chosen for the accesses");
        }
        return chosen;
    }
}
