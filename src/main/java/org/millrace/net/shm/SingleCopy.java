package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.ConnectionException;

/**
 * Setting that decides whether large payloads are copied only once. If so, the receiving process reads a payload in the
 * sending process's memory. A process only reads memory of another process and never writes it.
 *
 * @param use       condition for single copies
 * @param fromBytes minimum length of a payload that is copied once; the sending side's value is used
 */
public record SingleCopy(Use use, int fromBytes) {

    /** Condition for single copies. */
    public enum Use {
        /** Never use single copies. */
        OFF,
        /**
         * Always use single copies. The connection fails if the operating system does not let this process read the
         * other process.
         */
        REQUIRED,
        /** Use single copies if they are possible and take less processor time than two copies. */
        WHERE_IT_PAYS
    }

    /** Name of the setting, for messages. */
    public static final String SETTING = "MILLRACE_SHM_SINGLE_COPY";

    /**
     * Default minimum length of a payload that is copied once. On a machine with a fast Linux, a read of this length
     * takes 8 us, and copies the first byte after 0.4 us. On a machine with a slow Linux, the read takes 12 us, and
     * copies the first byte after 1.3 us. The length must be more than the largest slot of protocol LL, 64 KiB. A
     * device polls the lines of such a slot while they are stored, and the operating system does not guarantee to store
     * whole words.
     */
    private static final int FROM_BYTES = 128 << 10;

    private static final Logger LOG = LogManager.getLogger(SingleCopy.class);
    private static final Path YAMA = Path.of("/proc/sys/kernel/yama/ptrace_scope");
    private static final Set<String> LOGGED = ConcurrentHashMap.newKeySet();

    /**
     * Returns the choice that the value of the setting selects: true for on, false for off, and empty if it is not set.
     */
    public static SingleCopy of(Optional<Boolean> setting) {
        Use use = setting.map(on -> on ? Use.REQUIRED : Use.OFF).orElse(Use.WHERE_IT_PAYS);
        return new SingleCopy(use, FROM_BYTES);
    }

    /**
     * Returns the cookie that invites peers to read this process's memory; {@link Cookie#NONE} if they must not read
     * it.
     */
    public Cookie invite() {
        if (use == Use.OFF) {
            return Cookie.NONE;
        }
        if (yama().equals("1")) {
            ProcessReader.letAnyProcessRead();
        }
        return Cookie.ours();
    }

    /**
     * Returns a reader of another process's memory. If payloads are copied twice instead, logs the reason once.
     *
     * @param peer   the other process
     * @param cookie cookie that the other process's {@link #invite} returned
     * @return the reader; null if payloads are copied twice
     * @throws SingleCopyException if single copies are required and not possible
     */
    public @Nullable PeerMemory open(ProcessIdentity peer, Cookie cookie) {
        if (use == Use.OFF) {
            return null;
        }
        String obstacle = null;
        ProcessReader reader = null;
        if (cookie.address() == 0) {
            obstacle = "its " + SETTING + " is 0";
        } else if (!peer.isOfThisNamespace()) {
            obstacle = "its numbers of processes are those of another container, or there is no /proc of this one: "
                    + "run both in one PID namespace, with its /proc";
        } else {
            reader = new ProcessReader(peer, cookie);
            long result = reader.read(0, 0);
            obstacle = result < 0 ? obstacle((int) -result) : null;
        }
        if (obstacle != null) {
            String what = "cannot read the memory of " + peer + ": " + obstacle;
            if (use == Use.REQUIRED) {
                throw new SingleCopyException(what + "; " + SETTING + "=1 requires it");
            }
            say(what + "; large payloads are copied twice");
            return null;
        }
        if (use == Use.WHERE_IT_PAYS && !CopyCost.here().readPays()) {
            say(CopyCost.here() + ": large payloads are copied twice; " + SETTING + "=1 has them read all the same");
            return null;
        }
        return reader;
    }

    /**
     * Reports that a peer was invited to read this process's memory but does not read it. Does nothing if single copies
     * are not required.
     *
     * @throws SingleCopyException if single copies are required
     */
    public void declined(String connection) {
        if (use == Use.REQUIRED) {
            throw new SingleCopyException(connection + ": the receiving process does not read this process's memory, "
                    + "or " + SETTING + " is 0 there: see its log; " + SETTING + "=1 requires it here");
        }
    }

    /**
     * Returns whether other processes can read this memory through the operating system. Device registers cannot be
     * read in this way, for instance.
     */
    public static boolean isReadable(long address, long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            ProcessReader self = new ProcessReader(ProcessIdentity.CURRENT, Cookie.ours());
            MemorySegment one = arena.allocate(1);
            self.add(one, 0, 1);
            boolean first = bytes == 0 || self.read(address, 1) == 1;
            self.add(one, 0, 1);
            return first && (bytes == 0 || self.read(address + bytes - 1, 1) == 1);
        }
    }

    /**
     * Returns whether the operating system lets this process read another process's memory. The result comes from a
     * read of this process's own memory and from Yama's level.
     */
    public static boolean isPossible() {
        return !yama().equals("3") && new ProcessReader(ProcessIdentity.CURRENT, Cookie.ours()).read(0, 0) == 0;
    }

    /**
     * Returns text for users: whether and under which conditions processes with this process's permissions can use
     * single copies.
     */
    public static String describe() {
        long result = new ProcessReader(ProcessIdentity.CURRENT, Cookie.ours()).read(0, 0);
        if (result < 0) {
            return "not possible: " + obstacle((int) -result);
        }
        String pays = CopyCost.here() + ", so by default payloads from " + (FROM_BYTES >> 10) + " KiB on are "
                + (CopyCost.here().readPays() ? "read in place" : "copied twice");
        return switch (yama()) {
            case "2" -> "only for processes with CAP_SYS_PTRACE, as Yama's ptrace_scope is 2; " + pays;
            case "3" -> "not possible: Yama's ptrace_scope is 3, until the next boot";
            default -> pays;
        };
    }

    private static String obstacle(int errno) {
        return switch (errno) {
            case ProcessReader.EPERM -> "EPERM: " + switch (yama()) {
                case "1" -> "Yama's ptrace_scope is 1 and the process did not allow it";
                case "2" -> "Yama's ptrace_scope is 2: it takes CAP_SYS_PTRACE, or: sysctl kernel.yama.ptrace_scope=1";
                case "3" -> "Yama's ptrace_scope is 3: it can be changed only at the next boot";
                default -> "the two processes have different users or capabilities, one cannot be dumped, or a "
                        + "sandbox (seccomp) forbids process_vm_readv: docker run --cap-add=SYS_PTRACE";
            };
            case ProcessReader.ENOSYS -> "ENOSYS: this kernel, or the sandbox around it, has no process_vm_readv";
            case ProcessReader.ESRCH ->
                "ESRCH: its number belongs to another process here: run both in one PID " + "namespace";
            default -> ProcessReader.name(errno) + " from process_vm_readv";
        };
    }

    /** Returns the level of the Yama security module, 0 to 3; empty if Linux does not have Yama. */
    private static String yama() {
        try {
            return Files.readString(YAMA).strip();
        } catch (IOException none) {
            return "";
        }
    }

    private static void say(String what) {
        if (LOGGED.add(what.replaceAll("\\d+", ""))) {
            LOG.info("shared memory: {}", what);
        }
    }

    /**
     * Processor time on this machine to move memory between processes, measured with this process's own memory. In a
     * single copy the operating system looks up every page before it copies the page. On some machines this lookup
     * costs less than a second copy, and on others more.
     *
     * <p>
     * The following times were measured with frames of eight slots, between two processes on one core of a virtual AMD
     * EPYC. A read of 64 KiB by the operating system took 9 to 12 us, and two copies took 3.5 to 4 us. For 128 KiB, the
     * read took 14 us and the copies 7.5 to 9 us. For 512 KiB, the read took 55 us and the copies 37 us. For 4 MiB, the
     * read took 1900 us and the copies 1040 to 1290 us. On a virtual Xeon with GPUs, the read took 4.4 us for 64 KiB
     * and 16 us for 256 KiB.
     *
     * @param readNanos   time in nanoseconds to read {@value #BYTES} bytes by {@code process_vm_readv}
     * @param copiesNanos time in nanoseconds to copy the same number of bytes twice: from a slot to a ring, and from
     *                    the ring to another slot
     */
    record CopyCost(long readNanos, long copiesNanos) {

        static final int BYTES = 256 << 10;

        /**
         * Number of measured blocks. Together the blocks are larger than the private caches of a core. The slots of a
         * real connection are not in these caches either, because other cores have written them.
         */
        private static final int BLOCKS = 16;
        private static final int RING_BLOCKS = 8;
        private static final int ROUNDS = 2;

        /** Returns the costs. The costs are measured only once. The measurement takes some milliseconds. */
        static CopyCost here() {
            return Here.COST;
        }

        private static final class Here {
            static final CopyCost COST = measure();
        }

        /**
         * Returns whether the operating system's single copy saves at least a tenth of the time. A smaller gain is not
         * sufficient, because two cores can make two copies at the same time if both cores are available. Measured
         * between two H200s with one proxy thread per rank: an all-reduce of 128 MiB took 29 ms with one copy and 35 ms
         * with two copies.
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
         * Returns the lower quartile of times. While processes compete for cores at their start, the median is often
         * the time of a measurement that was preempted.
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

    /**
     * Failure because single copies are required and the operating system does not allow them. The processes do not try
     * another network in this case.
     */
    static final class SingleCopyException extends ConnectionException {

        private static final long serialVersionUID = 1L;

        SingleCopyException(String message) {
            super(message);
        }
    }
}
