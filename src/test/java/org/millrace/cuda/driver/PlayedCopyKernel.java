package org.millrace.cuda.driver;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.millrace.abi.kernel.CopyMailbox;
import org.millrace.ffi.mailbox.mailbox_h;
import org.millrace.ffi.mailbox.millraceCopyCommand;
import org.millrace.ffi.mailbox.millraceCopyMailbox;

/**
 * Executes the steps of {@code copy.cu} on host memory. The class uses the layout in the header instead of
 * {@link CopyMailbox}.
 */
final class PlayedCopyKernel {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

    private final MemorySegment mailbox;
    /** Copies that each worker has received, but has not yet reported as complete. */
    private final List<List<Given>> given = new ArrayList<>();
    private final Random random;
    private int number;
    /** Whether the last command extends the kernel's stay, and its worker; 0 for the warp. */
    boolean extended;
    int worker;

    private static final class Given {
        private final Runnable copy;
        private final boolean ordered;
        private boolean made;

        Given(Runnable copy, boolean ordered) {
            this.copy = copy;
            this.ordered = ordered;
        }
    }

    /** Creates a kernel with workers that make copies in the order of the commands. */
    PlayedCopyKernel(MemorySegment mailbox) {
        this(mailbox, null);
    }

    /** Creates a kernel with workers that make copies in any allowed order. */
    PlayedCopyKernel(MemorySegment mailbox, Random random) {
        this.mailbox = mailbox;
        this.random = random;
        for (int i = 0; i < mailbox_h.MILLRACE_COPY_WORKERS(); i++) {
            given.add(new ArrayList<>());
        }
    }

    void begin() {
        beginIn(0);
    }

    void beginIn(int stream) {
        number = (int) INT.getAcquire(mailbox, millraceCopyMailbox.done$offset());
        state(mailbox_h.MILLRACE_COPY_PRESENT() | stream << mailbox_h.MILLRACE_COPY_STREAM_SHIFT());
    }

    /** Executes the next command, or passes it to a worker. Returns false if there is no command. */
    boolean look() {
        long command = millraceCopyMailbox.commands$offset()
                + Integer.remainderUnsigned(number, mailbox_h.MILLRACE_COPY_COMMANDS()) * millraceCopyCommand.sizeof();
        long[] words = new long[mailbox_h.MILLRACE_COPY_WORDS()];
        for (int i = 0; i < words.length; i++) {
            words[i] = (long) LONG.getAcquire(mailbox, command + i * Long.BYTES);
            if ((short) (words[i] >>> mailbox_h.MILLRACE_COPY_NUMBER_SHIFT()) != (short) number) {
                return false;
            }
        }
        long to = whole(words[0], words[2]);
        long from = whole(words[1], words[2] >>> mailbox_h.MILLRACE_COPY_FROM_SHIFT());
        worker = (int) (words[3] >>> mailbox_h.MILLRACE_COPY_WORKER_SHIFT()) & 0xff;
        int bytes = (int) words[3];
        extended = (words[3] >>> mailbox_h.MILLRACE_COPY_EXTENDS_SHIFT() & 1) != 0;
        if (worker == 0) {
            carryOut(to, from, bytes);
        } else {
            boolean ordered = (words[3] >>> mailbox_h.MILLRACE_COPY_ORDERED_SHIFT() & 1) != 0;
            given.get(worker - 1).add(new Given(() -> at(to, bytes).copyFrom(at(from, bytes)), ordered));
        }
        number++;
        INT.setRelease(mailbox, millraceCopyMailbox.done$offset(), number);
        return true;
    }

    /** Lets a worker make one of its copies. Returns false if the worker has no copy. */
    boolean work(int worker) {
        List<Given> copies = given.get(worker - 1);
        if (copies.isEmpty()) {
            return false;
        }
        int chosen = 0;
        while (random != null && chosen + 1 < copies.size() && !copies.get(chosen + 1).ordered
                && random.nextBoolean()) {
            chosen++;
        }
        Given copy = copies.get(chosen);
        if (!copy.made) {
            copy.copy.run();
            copy.made = true;
        }
        long copied = millraceCopyMailbox.copied$offset() + (worker - 1L) * Integer.BYTES;
        while (!copies.isEmpty() && copies.getFirst().made) {
            copies.removeFirst();
            INT.setRelease(mailbox, copied, (int) INT.get(mailbox, copied) + 1);
        }
        return true;
    }

    private static long whole(long low, long high) {
        return low << 16 >>> 16 | high << 48;
    }

    private static void carryOut(long to, long from, int bytes) {
        at(to, bytes).copyFrom(at(from, bytes));
    }

    @SuppressWarnings("restricted") // tests pass addresses of their own memory
    static MemorySegment at(long address, long bytes) {
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    /** Announces that the kernel will exit. The next call of {@link #look} is the last. */
    void announce() {
        state(mailbox_h.MILLRACE_COPY_LEAVING());
        VarHandle.fullFence();
    }

    void go() {
        state(mailbox_h.MILLRACE_COPY_GONE());
    }

    private void state(int value) {
        INT.setRelease(mailbox, millraceCopyMailbox.state$offset(), value);
    }
}
