package org.millrace.stress;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import org.millrace.abi.UnpackMeta;
import org.millrace.abi.gin.GinCells;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinQueueMemory;
import org.millrace.abi.kernel.CopyMailbox;
import org.millrace.ffi.mailbox.mailbox_h;
import org.millrace.ffi.mailbox.millraceCopyCommand;
import org.millrace.ffi.mailbox.millraceCopyMailbox;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.JJ_Result;

/** Data that is published by lists of pages (UNPACK), queues (GIN), or commands to the kernel that copies. */
public final class ListsAndQueues {

    private ListsAndQueues() {}

    private static MemorySegment memory(long bytes) {
        return Arena.ofAuto().allocate(bytes, 4096);
    }

    /** UNPACK: when the receiving kernel sees the count of a slice's pages, it sees the entries of the pages. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "no list yet")
    @Outcome(id = "1, 7", expect = ACCEPTABLE, desc = "the piece is there")
    @Outcome(expect = FORBIDDEN, desc = "the count came before the piece")
    @State
    public static class CountComesAfterThePieces {
        /**
         * Lists of half a megabyte each, which states share. Each state has its own number, because nothing is zeroed.
         */
        private static final UnpackMeta[] METAS = new UnpackMeta[64];
        private static final int SLICES = 16;
        private static final AtomicInteger NUMBERS = new AtomicInteger();

        static {
            Arrays.setAll(METAS, _ -> UnpackMeta.of(Arena.global().allocate(UnpackMeta.BYTES, UnpackMeta.ALIGNMENT)));
        }

        private final int number = NUMBERS.incrementAndGet();
        private final UnpackMeta meta = METAS[number / SLICES % METAS.length];
        private final int slice = number % SLICES;
        /**
         * Index of this state's entry in its list. States that run at the same time may share the count of a slice, and
         * then no state finds its own number.
         */
        private final int piece = number / SLICES / METAS.length % UnpackMeta.MAX_PIECES;

        /** The receive proxy. */
        @Actor
        public void proxy() {
            meta.piece(slice, piece, 0, number, 0);
            meta.countRelease(slice, number);
        }

        /** The receiving kernel. */
        @Actor
        public void kernel(JJ_Result result) {
            if (meta.countAcquire(slice) == number) {
                result.r1 = 1;
                result.r2 = meta.length(slice, piece) == number ? 7 : 0;
            }
        }
    }

    /** GIN: a complete descriptor publishes the data that its kernel stored in the window before. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "a word is missing")
    @Outcome(id = "15, 7", expect = ACCEPTABLE, desc = "all words, and the window's data")
    @Outcome(expect = FORBIDDEN, desc = "the descriptor came before the data")
    @State
    public static class DescriptorComesAfterTheWindow {
        private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V28;

        private final GinQueueMemory queue =
                GinQueueMemory.of(memory(GinQueueMemory.bytes(FORMAT, 1, 1)), FORMAT, 1, 1);
        private final MemorySegment window = memory(64);
        private final long[] posted = new long[FORMAT.words()];
        private final long[] taken = new long[FORMAT.words()];

        /** Sets the flag in each word. */
        public DescriptorComesAfterTheWindow() {
            Arrays.fill(posted, 15);
        }

        /** The kernel. */
        @Actor
        public void kernel() {
            window.set(ValueLayout.JAVA_LONG, 0, 7);
            VarHandle.releaseFence(); // as GinPoster does
            queue.storeOpaque(0, posted);
        }

        /** The proxy. */
        @Actor
        public void proxy(JJ_Result result) {
            if (queue.take(0, taken)) {
                result.r1 = taken[FORMAT.words() - 1];
                result.r2 = window.get(ValueLayout.JAVA_LONG, 0);
            }
        }
    }

    /**
     * GIN: when the index permits a kernel to reuse a place in the queue, no flag of the old descriptor is left there.
     */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "the place is not free yet, or it is, and empty")
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "the place is free, and empty")
    @Outcome(expect = FORBIDDEN, desc = "the index came before the zeros")
    @State
    public static class IndexComesAfterTheZeros {
        private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V28;

        private final MemorySegment words = memory(GinQueueMemory.bytes(FORMAT, 1, 1));
        private final GinQueueMemory queue = GinQueueMemory.of(words, FORMAT, 1, 1);
        private final GinIndices consumed = GinIndices.of(memory(Integer.BYTES), 1);
        private final long[] taken = new long[FORMAT.words()];

        /** Posts a descriptor. */
        public IndexComesAfterTheZeros() {
            for (int word = 0; word < FORMAT.words(); word++) {
                words.setAtIndex(ValueLayout.JAVA_LONG, word, 15);
            }
        }

        /** The proxy. */
        @Actor
        public void proxy() {
            queue.take(0, taken);
            consumed.release(0, 1);
        }

        /** The kernel. */
        @Actor
        public void kernel(JJ_Result result) {
            result.r1 = consumed.acquire(0);
            result.r2 = result.r1 == 0 ? 0 : words.getAtIndex(ValueLayout.JAVA_LONG, FORMAT.words() - 1);
        }
    }

    /** GIN: a signal becomes visible after the bytes of the put. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "no signal")
    @Outcome(id = "1, 7", expect = ACCEPTABLE, desc = "the data is there")
    @Outcome(expect = FORBIDDEN, desc = "the signal came before the data")
    @State
    public static class SignalComesAfterThePut {
        private final GinCells signals = GinCells.of(memory(Long.BYTES));
        private final MemorySegment window = memory(64);

        /** The proxy of the receiving rank. */
        @Actor
        public void proxy() {
            window.set(ValueLayout.JAVA_LONG, 0, 7);
            signals.addRelease(0, 1);
        }

        /** The waiting kernel. */
        @Actor
        public void kernel(JJ_Result result) {
            result.r1 = signals.acquire(0);
            result.r2 = result.r1 == 0 ? 0 : window.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /** Commands to the kernel that copies: a complete command publishes the data that the kernel copies. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "a word is missing")
    @Outcome(id = "1, 7", expect = ACCEPTABLE, desc = "the command, and the data to be copied")
    @Outcome(expect = FORBIDDEN, desc = "the command came before the data")
    @State
    public static class CommandComesAfterTheData {
        private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
        private static final int NUMBER = 1;

        private final MemorySegment words = memory(CopyMailbox.BYTES);
        private final CopyMailbox mailbox = CopyMailbox.of(words);
        private final MemorySegment data = memory(64);

        /** The host. */
        @Actor
        public void host() {
            data.set(ValueLayout.JAVA_LONG, 0, 7);
            mailbox.copyRelease(NUMBER, 64, 128, 8, 0, false, true);
        }

        /** The kernel. */
        @Actor
        public void kernel(JJ_Result result) {
            boolean there = true;
            for (int word = 0; word < mailbox_h.MILLRACE_COPY_WORDS(); word++) {
                there &= (long) LONG.getAcquire(words,
                        NUMBER * millraceCopyCommand.sizeof() + (long) word * Long.BYTES) >>> mailbox_h
                                .MILLRACE_COPY_NUMBER_SHIFT() == NUMBER;
            }
            if (there) {
                result.r1 = 1;
                result.r2 = data.get(ValueLayout.JAVA_LONG, 0);
            }
        }
    }

    /** The opposite direction: a host that sees the completion of a copy also sees the copied data. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "not copied yet")
    @Outcome(id = "1, 7", expect = ACCEPTABLE, desc = "copied, and there")
    @Outcome(expect = FORBIDDEN, desc = "done came before the data")
    @State
    public static class DoneComesAfterTheCopy {
        private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

        private final MemorySegment words = memory(CopyMailbox.BYTES);
        private final CopyMailbox mailbox = CopyMailbox.of(words);
        private final MemorySegment data = memory(64);

        /** The kernel. */
        @Actor
        public void kernel() {
            data.set(ValueLayout.JAVA_LONG, 0, 7);
            INT.setRelease(words, millraceCopyMailbox.done$offset(), 1);
        }

        /** The host. */
        @Actor
        public void host(JJ_Result result) {
            result.r1 = mailbox.doneAcquire();
            result.r2 = result.r1 == 0 ? 0 : data.get(ValueLayout.JAVA_LONG, 0);
        }
    }
}
