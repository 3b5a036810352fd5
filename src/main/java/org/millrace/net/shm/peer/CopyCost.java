package org.millrace.net.shm.peer;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.net.shm.file.ProcessIdentity;

/**
 * What it costs on this machine to copy memory by the kernel and by a thread's own loads and stores, measured with this
 * process's own memory: the kernel looks every page up, which on some machines costs more than a second copy.
 *
 * @param readNanos of {@value #BYTES} bytes by {@code process_vm_readv}; the best of some
 * @param copyNanos of as many by an ordinary copy
 */
record CopyCost(long readNanos, long copyNanos) {

    static final int BYTES = 256 << 10;

    private static final int BLOCKS = 8;
    private static final int ROUNDS = 3;

    /** Measured once, within two milliseconds. */
    static CopyCost here() {
        return Here.COST;
    }

    private static final class Here {
        static final CopyCost COST = measure();
    }

    /**
     * Whether one copy by the kernel takes less of a core's time than two by threads. What is copied here is near the
     * core; what a GPU has written, or another core, is not, and then a second copy costs more than this one shows: so
     * the kernel may take three times as long. (Between two H200s 16 us are to 9, and 128 MiB of an all-reduce with one
     * thread a rank take 29 ms with one copy and 35 with two.)
     */
    boolean readPays() {
        return readNanos < 3 * copyNanos;
    }

    private static CopyCost measure() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment from = arena.allocate((long) BLOCKS * BYTES, 4096).fill((byte) 1);
            MemorySegment to = arena.allocate((long) BLOCKS * BYTES, 4096).fill((byte) 2);
            ProcessReader self = new ProcessReader(ProcessIdentity.CURRENT, Cookie.ours());
            long read = Long.MAX_VALUE;
            long copy = Long.MAX_VALUE;
            for (int i = 0; i < ROUNDS * BLOCKS; i++) {
                long at = (long) (i % BLOCKS) * BYTES;
                long other = (long) ((i + BLOCKS / 2) % BLOCKS) * BYTES; // not what the read left in the cache
                long start = System.nanoTime();
                self.add(to, at, BYTES);
                long result = self.read(from.address() + at, BYTES);
                long middle = System.nanoTime();
                MemorySegment.copy(from, other, to, other, BYTES);
                long end = System.nanoTime();
                read = result == BYTES ? Math.min(read, middle - start) : read;
                copy = Math.min(copy, end - middle);
            }
            return new CopyCost(read, copy);
        }
    }

    @Override
    public String toString() {
        return "reading " + (BYTES >> 10) + " KiB of another process takes " + readNanos / 1000
                + " us on this machine, and copying as much " + copyNanos / 1000 + " us";
    }
}
