package org.millrace.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.abi.kernel.CopyMailbox;
import org.millrace.ffi.mailbox.mailbox_h;
import org.millrace.ffi.mailbox.millraceCopyCommand;
import org.millrace.ffi.mailbox.millraceCopyMailbox;
import org.millrace.foreign.Words;

/**
 * A queue of copies for a benchmark without a GPU. No byte is copied. The method {@link #answer} plays the copy kernel
 * and reports all posted copies as complete. The thread of the queue calls {@link #answer}.
 */
public final class InstantCopies {

    private final MemorySegment mailbox;
    private final long base;
    private final CopyQueue queue;
    private int number;

    public InstantCopies(Arena arena) {
        mailbox = arena.allocate(CopyMailbox.BYTES, CopyMailbox.ALIGNMENT);
        base = mailbox.address();
        queue = new CopyQueue(new InstantEngine(),
                new CopyCommands(CopyMailbox.of(mailbox), 1, CopyMailbox.WORKERS, this::begin), true);
    }

    public CopyQueue queue() {
        return queue;
    }

    private void begin() {
        number = (int) Words.INT.getAcquire(Words.MEMORY, base + millraceCopyMailbox.done$offset());
        Words.INT.setRelease(Words.MEMORY, base + millraceCopyMailbox.state$offset(),
                mailbox_h.MILLRACE_COPY_PRESENT());
    }

    /** Takes all posted commands, and reports their copies as complete. */
    public void answer() {
        int next = number;
        while (true) {
            long command = base + (long) (next & CopyMailbox.COMMANDS - 1) * millraceCopyCommand.sizeof();
            long work = (long) Words.LONG.getAcquire(Words.MEMORY, command + 3 * Long.BYTES);
            if ((short) (work >>> mailbox_h.MILLRACE_COPY_NUMBER_SHIFT()) != (short) next) {
                break;
            }
            int worker = (int) (work >>> mailbox_h.MILLRACE_COPY_WORKER_SHIFT()) & 0xff;
            if (worker > 0) {
                long copied = base + millraceCopyMailbox.copied$offset() + (worker - 1L) * Integer.BYTES;
                Words.INT.setRelease(Words.MEMORY, copied, (int) Words.INT.get(Words.MEMORY, copied) + 1);
            }
            next++;
        }
        if (next != number) {
            number = next;
            Words.INT.setRelease(Words.MEMORY, base + millraceCopyMailbox.done$offset(), next);
        }
    }

    /** An engine whose copies are complete at once. */
    private static final class InstantEngine implements CopyQueue.Engine {
        private long begun;

        @Override
        public boolean hasRoom() {
            return true;
        }

        @Override
        public long copy(long to, long from, long bytes, int order, boolean fromHost) {
            return ++begun;
        }

        @Override
        public boolean isDone(long number) {
            return true;
        }

        @Override
        public boolean submit() {
            return false;
        }

        @Override
        public CopyQueue.Counts counts() {
            return new CopyQueue.Counts(begun, 0, 0, 0, 0, 0);
        }

        @Override
        public void settle() {
            // no copy is ever in flight
        }

        @Override
        public void close() {
            // nothing is open
        }
    }
}
