package org.millrace.net.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.millrace.file.ProcessIdentity;

/**
 * What of a core's time it costs on this machine to move memory between processes, measured with this process's own.
 * The kernel looks every page up before it copies it: on some machines that costs less than a second copy, on others
 * more.
 *
 * <p>
 * Frames of eight slots between two processes on one core of a virtual AMD EPYC, read and copied twice: 64 KiB 9 to 12
 * and 3.5 to 4 us, 128 KiB 14 and 7.5 to 9, 512 KiB 55 and 37, 4 MiB 1900 and 1040 to 1290. On a virtual Xeon with GPUs
 * the kernel reads 64 KiB in 4.4 us, 256 KiB in 16.
 *
 * @param readNanos   of {@value #BYTES} bytes by {@code process_vm_readv}
 * @param copiesNanos of as many from a slot to a ring, and from the ring to another slot
 */
record CopyCost(long readNanos, long copiesNanos) {

    static final int BYTES = 256 << 10;

    /** So many that no core's own cache holds them: slots are written by others. */
    private static final int BLOCKS = 16;
    private static final int RING_BLOCKS = 8;
    private static final int ROUNDS = 2;

    /** Measured once, within some milliseconds. */
    static CopyCost here() {
        return Here.COST;
    }

    private static final class Here {
        static final CopyCost COST = measure();
    }

    /**
     * Whether the kernel's one copy saves a tenth of the time at least. Less is not worth it: two copies are made by
     * two cores, at the same time where both are there. (128 MiB of an all-reduce between two H200s, one proxy thread a
     * rank: 29 ms with one copy, 35 with two.)
     */
    boolean readPays() {
        return readNanos <= copiesNanos - copiesNanos / 10;
    }

    private static CopyCost measure() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment from = arena.allocate((long) BLOCKS * BYTES, 4096).fill((byte) 1);
            MemorySegment to = arena.allocate((long) BLOCKS * BYTES, 4096).fill((byte) 2);
            MemorySegment ring = arena.allocate((long) RING_BLOCKS * BYTES, 4096).fill((byte) 3);
            ProcessReader self = new ProcessReader(ProcessIdentity.CURRENT, Cookie.ours());
            long[] read = new long[ROUNDS * BLOCKS];
            long[] copies = new long[ROUNDS * BLOCKS];
            for (int i = 0; i < ROUNDS * BLOCKS; i++) {
                long one = (long) (i % BLOCKS) * BYTES;
                long other = (long) ((i + BLOCKS / 2) % BLOCKS) * BYTES;
                long between = (long) (i % RING_BLOCKS) * BYTES;
                long start = System.nanoTime();
                self.add(to, one, BYTES);
                long result = self.read(from.address() + one, BYTES);
                long middle = System.nanoTime();
                MemorySegment.copy(from, other, ring, between, BYTES);
                MemorySegment.copy(ring, between, to, other, BYTES);
                long end = System.nanoTime();
                read[i] = result == BYTES ? middle - start : Long.MAX_VALUE;
                copies[i] = end - middle;
            }
            return new CopyCost(typical(read), typical(copies));
        }
    }

    /**
     * The lower quartile: while a process starts, on cores that others use too, the median is often a preempted one.
     */
    private static long typical(long[] times) {
        Arrays.sort(times);
        return times[times.length / 4];
    }

    @Override
    public String toString() {
        return "reading " + (BYTES >> 10) + " KiB of another process takes " + readNanos / 1000
                + " us of a core on this machine, and copying them twice " + copiesNanos / 1000 + " us";
    }
}
