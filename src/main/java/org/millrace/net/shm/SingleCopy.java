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
 * Whether large payloads are copied once: the receiving process reads them where they lie in the sending process's
 * memory. Only reading is done, never writing: nobody touches memory of a process that does not know of it.
 *
 * @param use       when
 * @param fromBytes length of a payload from which it is done; the sending side's
 */
public record SingleCopy(Use use, int fromBytes) {

    /** When payloads are copied once. */
    public enum Use {
        /** Never. */
        OFF,
        /** Always: it is an error if the kernel does not let this process read the other one. */
        REQUIRED,
        /** Where it is possible, and takes less of a core's time than two copies. */
        WHERE_IT_PAYS
    }

    /** The setting's name, for messages. */
    public static final String SETTING = "MILLRACE_SHM_SINGLE_COPY";

    /**
     * The smallest payload that is read by default. Where the kernel is quick a call costs 0.4 us before the first
     * byte, where it is not 1.3 us, of 8 and 12 us for so many bytes; and the largest slot of protocol LL, 64 KiB,
     * whose lines a device polls while they are stored, must be shorter.
     */
    private static final int FROM_BYTES = 128 << 10;

    private static final Logger LOG = LogManager.getLogger(SingleCopy.class);
    private static final Path YAMA = Path.of("/proc/sys/kernel/yama/ptrace_scope");
    private static final Set<String> LOGGED = ConcurrentHashMap.newKeySet();

    /** As the setting has it: switched on, switched off, or neither. */
    public static SingleCopy of(Optional<Boolean> setting) {
        Use use = setting.map(on -> on ? Use.REQUIRED : Use.OFF).orElse(Use.WHERE_IT_PAYS);
        return new SingleCopy(use, FROM_BYTES);
    }

    /** What peers that are to read this process need to know; {@link Cookie#NONE} if none is to. */
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
     * Finds out whether this process is to read another one, and logs it once if it cannot.
     *
     * @param peer   the other process
     * @param cookie what it {@link #invite invited} with
     * @return null if payloads are to be copied twice
     * @throws SingleCopyException if it is required, and not possible
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

    /** A peer that was invited does not read: throws if it is required. */
    public void declined(String connection) {
        if (use == Use.REQUIRED) {
            throw new SingleCopyException(connection + ": the receiving process does not read this process's memory, "
                    + "or " + SETTING + " is 0 there: see its log; " + SETTING + "=1 requires it here");
        }
    }

    /** Whether the kernel can read this memory for other processes: not so a device's registers, for instance. */
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

    /** Whether the kernel lets this process read another one's memory at all, as far as its own tells. */
    public static boolean isPossible() {
        return !yama().equals("3") && new ProcessReader(ProcessIdentity.CURRENT, Cookie.ours()).read(0, 0) == 0;
    }

    /** What this machine allows, for people: the same that a connection would find between two processes like this. */
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

    /** What Yama allows, 0 to 3; empty where there is none. */
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
     * What of a core's time it costs on this machine to move memory between processes, measured with this process's
     * own. The kernel looks every page up before it copies it: on some machines that costs less than a second copy, on
     * others more.
     *
     * <p>
     * Frames of eight slots between two processes on one core of a virtual AMD EPYC, read and copied twice: 64 KiB 9 to
     * 12 and 3.5 to 4 us, 128 KiB 14 and 7.5 to 9, 512 KiB 55 and 37, 4 MiB 1900 and 1040 to 1290. On a virtual Xeon
     * with GPUs the kernel reads 64 KiB in 4.4 us, 256 KiB in 16.
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
         * Whether the kernel's one copy saves a tenth of the time at least. Less is not worth it: two copies are made
         * by two cores, at the same time where both are there. (128 MiB of an all-reduce between two H200s, one proxy
         * thread a rank: 29 ms with one copy, 35 with two.)
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
         * The lower quartile: while a process starts, on cores that others use too, the median is often a preempted
         * one.
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

    /** Single copies are required, and the kernel does not allow them: another network is no answer to that. */
    static final class SingleCopyException extends ConnectionException {

        private static final long serialVersionUID = 1L;

        SingleCopyException(String message) {
            super(message);
        }
    }
}
