package org.millrace.cuda;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.millrace.abi.CopyMailbox;
import org.millrace.ffi.mailbox.mailbox_h;
import org.millrace.ffi.mailbox.millraceCopyCommand;
import org.millrace.ffi.mailbox.millraceCopyMailbox;

/**
 * Does what {@code copy.cu} does, step by step, on host memory. It knows nothing of {@link CopyMailbox}, only the
 * layout that the header declares.
 */
final class PlayedCopyKernel {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

    private final MemorySegment mailbox;
    /** By worker: what it was given. */
    private final List<Queue<Runnable>> given = new ArrayList<>();
    private int number;

    PlayedCopyKernel(MemorySegment mailbox) {
        this.mailbox = mailbox;
        for (int i = 0; i < mailbox_h.MILLRACE_COPY_WORKERS(); i++) {
            given.add(new ConcurrentLinkedQueue<>());
        }
    }

    void begin() {
        beginIn(0);
    }

    void beginIn(int stream) {
        number = (int) INT.getAcquire(mailbox, millraceCopyMailbox.done$offset());
        state(mailbox_h.MILLRACE_COPY_PRESENT() | stream << mailbox_h.MILLRACE_COPY_STREAM_SHIFT());
    }

    /** Carries out the next command, or gives it to a worker, if it is there. */
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
        int worker = (int) (words[3] >>> mailbox_h.MILLRACE_COPY_WORKER_SHIFT()) & 0xff;
        int bytes = (int) words[3];
        if (worker == 0) {
            carryOut(to, from, bytes);
        } else {
            given.get(worker - 1).add(() -> at(to, bytes).copyFrom(at(from, bytes)));
        }
        number++;
        INT.setRelease(mailbox, millraceCopyMailbox.done$offset(), number);
        return true;
    }

    /** One worker makes the next of the copies that it was given; false if there is none. */
    boolean work(int worker) {
        Runnable copy = given.get(worker - 1).poll();
        if (copy == null) {
            return false;
        }
        copy.run();
        long copied = millraceCopyMailbox.copied$offset() + (worker - 1L) * Integer.BYTES;
        INT.setRelease(mailbox, copied, (int) INT.get(mailbox, copied) + 1);
        return true;
    }

    private static long whole(long low, long high) {
        return low << 16 >>> 16 | high << 48;
    }

    private static void carryOut(long to, long from, int bytes) {
        at(to, bytes).copyFrom(at(from, bytes));
    }

    @SuppressWarnings("restricted") // tests give addresses of their own memory
    static MemorySegment at(long address, long bytes) {
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    /** Says that it leaves; the look that follows is the last in vain. */
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
