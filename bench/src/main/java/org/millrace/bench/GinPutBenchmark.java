package org.millrace.bench;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinOp;
import org.millrace.abi.gin.GinQueueMemory;
import org.millrace.cuda.driver.CopyOrder;
import org.millrace.cuda.driver.InstantCopies;
import org.millrace.gin.GinAgent;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinContext;
import org.millrace.gin.GinOptions;
import org.millrace.gin.SignalMemory;
import org.millrace.gin.StagingRing;
import org.millrace.gin.Window;
import org.millrace.gin.WindowMemory;
import org.millrace.gin.WindowTransfer;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Time of GIN's agent for a put of 7 KiB to a mapped window of a peer, from the descriptor in its queue to the free
 * place in the queue. No byte is copied, and no GPU is needed. With {@code HERE} the time includes the stores of the
 * descriptor and the answers of the copy kernel, some 20 ns.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 2, jvmArgsAppend = {"--enable-native-access=ALL-UNNAMED", "-Xbatch"})
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
public class GinPutBenchmark {

    private static final int PUTS = 256;
    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;
    private static final int QUEUE_SIZE = 1024;
    private static final int BYTES = 7168;
    private static final long WINDOW_BYTES = 1L << 32;
    private static final int RANKS = 2;
    private static final int PEER = 1;
    /** Time between two looks of a copy kernel at its commands, in nanoseconds. A look crosses PCIe. */
    private static final long LOOK_NANOS = 1500;

    /** Number of contexts that the puts use in turn. */
    @Param({"4", "17"})
    int contexts;

    /** Way of the copies. */
    @Param
    Copies copies;

    /** Thread that posts the descriptors, and that answers for the copy kernel. */
    @Param
    Device device;

    private final GinAgent agent = new GinAgent("benchmark");
    private final long[] words = new long[FORMAT.words()];
    private GinQueueMemory[] queues;
    private GinIndices[] cis;
    private int[] pis;
    private int[] completed;
    private InstantCopies kernel;
    private Thread poster;
    private volatile boolean over;

    /** The way of the copies. */
    public enum Copies {
        /** Each copy is complete when it begins, so the time is that of the package {@code gin}. */
        AT_ONCE,
        /** Copies are posted to the mailbox of a copy kernel, which reports them as complete. */
        KERNEL
    }

    /** The thread of the emulated device. */
    public enum Device {
        /** The agent's own thread: all memory is in the core's caches. */
        HERE,
        /** Another thread, so that descriptors and commands move between cores. */
        BESIDE
    }

    /** Creates one rank, with an agent that this benchmark runs. */
    @Setup
    public void setUp() {
        Arena arena = Arena.ofAuto();
        kernel = copies == Copies.KERNEL ? new InstantCopies(arena) : null;
        GinCommunicator communicator = new GinCommunicator(0, 0, new FrameSender[] {null, new Sink()},
                new FrameReceiver[] {null, new Silence()}, GinOptions.defaults(), Throwable::printStackTrace);
        Window window = communicator.register(kernel == null ? new AtOnce() : new ByKernel(kernel));
        SignalMemory signals = new SignalMemory(arena.allocate(SignalMemory.bytes(RANKS, contexts, 1), 128), RANKS, 1);
        signals.settled(0, 1); // the hello
        queues = new GinQueueMemory[contexts];
        cis = new GinIndices[contexts];
        pis = new int[contexts];
        completed = new int[contexts];
        for (int i = 0; i < contexts; i++) {
            queues[i] = GinQueueMemory.of(arena.allocate(GinQueueMemory.bytes(FORMAT, RANKS, QUEUE_SIZE), 128), FORMAT,
                    RANKS, QUEUE_SIZE);
            MemorySegment indices = arena.allocate(128, 128).asSlice(0, RANKS * Integer.BYTES);
            cis[i] = GinIndices.of(indices, RANKS);
            GinContext context =
                    new GinContext(i, queues[i], indices, arena.allocate(8, 64), arena.allocate(8, 64), RANKS);
            context.reach(PEER, signals.toward(i, 0));
            communicator.add(context);
        }
        FORMAT.begin(words, GinOp.PUT, BYTES);
        FORMAT.source(words, window.handle(), 0);
        FORMAT.target(words, window.handle(), WINDOW_BYTES / 2);
        agent.add(communicator);
        if (device == Device.BESIDE) {
            poster = new Thread(this::runDevice);
            poster.start();
        }
    }

    /** Ends the device's thread. */
    @TearDown
    public void tearDown() throws InterruptedException {
        over = true;
        while (poster != null && poster.isAlive()) {
            agent.doWork();
        }
    }

    /** Serves puts until as many as an invocation counts are complete. */
    @Benchmark
    @OperationsPerInvocation(PUTS)
    public int put() {
        if (device == Device.HERE) {
            for (int i = 0; i < PUTS; i++) {
                post(i % contexts);
            }
        }
        int done = 0;
        while (done < PUTS) {
            agent.doWork();
            if (device == Device.HERE && kernel != null) {
                kernel.answer();
            }
            done += completed();
        }
        return done;
    }

    private void post(int context) {
        queues[context].storeOpaque(queues[context].at(PEER, pis[context]++), words);
    }

    private int completed() {
        int sum = 0;
        for (int i = 0; i < contexts; i++) {
            int now = cis[i].acquire(PEER);
            sum += now - completed[i];
            completed[i] = now;
        }
        return sum;
    }

    private void runDevice() {
        long looked = 0;
        for (int context = 0; !over; context = context + 1 < contexts ? context + 1 : 0) {
            if (pis[context] - cis[context].acquire(PEER) < QUEUE_SIZE) {
                post(context);
            }
            if (kernel != null && context == 0 && System.nanoTime() - looked > LOOK_NANOS) {
                kernel.answer();
                looked = System.nanoTime();
            }
        }
    }

    /** A connection that accepts frames and sends them nowhere. */
    private static final class Sink implements FrameSender {
        private long offered;

        @Override
        public boolean offer(FrameHeader header, MemoryRegion region, long offset) {
            offered++;
            return true;
        }

        @Override
        public int progress() {
            return 0;
        }

        @Override
        public long framesCompleted() {
            return offered;
        }

        @Override
        public void close() {
            // nothing is open
        }

        @Override
        public void abort() {
            // nothing is open
        }
    }

    /** A connection from a peer that sends nothing. */
    private static final class Silence implements FrameReceiver {
        @Override
        public FrameHeader poll() {
            return null;
        }

        @Override
        public void accept(MemoryRegion region, long offset) {
            throw new IllegalStateException("no frame was received");
        }

        @Override
        public int progress() {
            return 0;
        }

        @Override
        public long framesCompleted() {
            return 0;
        }

        @Override
        public void close() {
            // nothing is open
        }
    }

    /** A window that supports only puts to the peer's part of it. */
    private abstract static class PeerWindow implements WindowMemory {
        @Override
        public long bytes() {
            return WINDOW_BYTES;
        }

        @Override
        public boolean isCopied() {
            return true;
        }

        @Override
        public long reach(int peer) {
            return WINDOW_BYTES;
        }

        @Override
        public boolean openRead(WindowTransfer transfer, long offset, long bytes) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean openWrite(WindowTransfer transfer, long offset, long bytes) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean written(WindowTransfer transfer) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean beginCopy(WindowTransfer transfer, long offset, WindowMemory source, long sourceOffset,
                long bytes) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean beginAdd(WindowTransfer transfer, long offset, long value) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean beginCopyOut(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset,
                long bytes) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean beginCopyIn(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset,
                long bytes) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void close() {
            // nothing is open
        }
    }

    private static final class AtOnce extends PeerWindow {
        @Override
        public boolean readable(WindowTransfer transfer) {
            return true;
        }

        @Override
        public boolean beginPeerCopy(WindowTransfer transfer, int peer, long offset, WindowMemory source,
                long sourceOffset, long bytes) {
            transfer.place(null, 0, offset, bytes);
            return true;
        }
    }

    /** The same steps as for a window in a GPU's memory. */
    private static final class ByKernel extends PeerWindow {
        private static final long ADDRESS = 0x7f00_0000_0000L;
        private final InstantCopies kernel;

        ByKernel(InstantCopies kernel) {
            this.kernel = kernel;
        }

        @Override
        public boolean readable(WindowTransfer transfer) {
            return kernel.queue().isDone(transfer.ticket());
        }

        @Override
        public boolean beginPeerCopy(WindowTransfer transfer, int peer, long offset, WindowMemory source,
                long sourceOffset, long bytes) {
            if (!kernel.queue().hasRoom()) {
                return false;
            }
            transfer.slot(-1);
            transfer.place(null, 0, offset, bytes);
            int sequence = transfer.sequence();
            int order = transfer.isStrict() ? CopyOrder.strict(sequence) : CopyOrder.relaxed(sequence);
            transfer.ticket(kernel.queue().copy(ADDRESS + WINDOW_BYTES + offset, ADDRESS + sourceOffset, bytes, order));
            return true;
        }
    }
}
