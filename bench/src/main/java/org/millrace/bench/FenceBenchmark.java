package org.millrace.bench;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeUnit;
import org.millrace.bench.access.LineMemory;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CurrentDevice;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Group;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Access modes, fences, and the pairs of the protocol, each alone and with a second thread at the pair's other end. A
 * store always stores the same number, because a counter would need another load. {@code baseline} is JMH's loop.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 2, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
public class FenceBenchmark {

    private static String chosen = "";

    /** Kind of memory that contains the words. A machine with a GPU has {@code pinned} memory, too. */
    @Param({"array", "native", "mapped"})
    String memory;

    /**
     * The words, each on its own cache line. The handles have no coordinates, so they are constants for the compiler
     * with any memory.
     */
    private static final class Words {
        static final String MEMORY = chosen;
        private static final long[] ARRAY = new long[512];
        private static final MemorySegment SEGMENT = allocate();
        static final VarHandle DATA = word(0);
        static final VarHandle TAIL = word(256);
        static final VarHandle SLOT = word(512);
        static final VarHandle HEAD = word(768);

        /** Pinned memory needs GPU 0 to be current while it is allocated. */
        private static MemorySegment allocate() {
            if (!MEMORY.equals("pinned")) {
                return LineMemory.allocate(MEMORY.equals("array") ? "native" : MEMORY);
            }
            try (CurrentDevice _ = CudaRuntime.load().device(0).makeCurrent()) {
                return LineMemory.allocate(MEMORY);
            }
        }

        private static VarHandle word(int offset) {
            return MEMORY.equals("array")
                    ? MethodHandles.insertCoordinates(MethodHandles.arrayElementVarHandle(long[].class), 0, ARRAY,
                            offset / Long.BYTES)
                    : MethodHandles.insertCoordinates(ValueLayout.JAVA_LONG.varHandle(), 0, SEGMENT, (long) offset);
        }
    }

    /** Chooses the memory. A JVM keeps its choice. */
    @Setup
    public void setUp() {
        chosen = memory;
        if (!Words.MEMORY.equals(memory)) {
            throw new IllegalStateException(
                    "this JVM has measured " + Words.MEMORY + " memory: each kind needs a JVM of its own, so no -f 0");
        }
    }

    /** JMH's loop alone. */
    @Benchmark
    public void baseline() {}

    /** Reads, plain. */
    @Benchmark
    public long getPlain() {
        return (long) Words.TAIL.get();
    }

    /** Reads, opaque. */
    @Benchmark
    public long getOpaque() {
        return (long) Words.TAIL.getOpaque();
    }

    /** Reads, acquire. */
    @Benchmark
    public long getAcquire() {
        return (long) Words.TAIL.getAcquire();
    }

    /** Reads, volatile. */
    @Benchmark
    public long getVolatile() {
        return (long) Words.TAIL.getVolatile();
    }

    /** Stores, plain. */
    @Benchmark
    public void setPlain() {
        Words.TAIL.set(1L);
    }

    /** Stores, opaque. */
    @Benchmark
    public void setOpaque() {
        Words.TAIL.setOpaque(1L);
    }

    /** Stores, release. */
    @Benchmark
    public void setRelease() {
        Words.TAIL.setRelease(1L);
    }

    /** Stores, volatile. */
    @Benchmark
    public void setVolatile() {
        Words.TAIL.setVolatile(1L);
    }

    /** Reads a word, and changes it with a compareAndSet that succeeds. */
    @Benchmark
    public boolean compareAndSet() {
        long seen = (long) Words.TAIL.get();
        return Words.TAIL.compareAndSet(seen, seen + 1);
    }

    /** An opaque store and a loadLoadFence after it. */
    @Benchmark
    public void loadLoadFence() {
        Words.TAIL.setOpaque(1L);
        VarHandle.loadLoadFence();
    }

    /** An opaque store and an acquireFence after it. */
    @Benchmark
    public void acquireFence() {
        Words.TAIL.setOpaque(1L);
        VarHandle.acquireFence();
    }

    /** An opaque store and a storeStoreFence after it. */
    @Benchmark
    public void storeStoreFence() {
        Words.TAIL.setOpaque(1L);
        VarHandle.storeStoreFence();
    }

    /** An opaque store and a releaseFence after it. */
    @Benchmark
    public void releaseFence() {
        Words.TAIL.setOpaque(1L);
        VarHandle.releaseFence();
    }

    /** An opaque store and a fullFence after it. */
    @Benchmark
    public void fullFence() {
        Words.TAIL.setOpaque(1L);
        VarHandle.fullFence();
    }

    /** Stores data, then tail with release, as in the protocol. */
    @Benchmark
    public void dataThenTail() {
        Words.DATA.set(1L);
        Words.TAIL.setRelease(1L);
    }

    /** Stores data, then tail with a volatile store. */
    @Benchmark
    public void dataThenTailVolatile() {
        Words.DATA.set(1L);
        Words.TAIL.setVolatile(1L);
    }

    /** Stores data, executes a full fence, and then stores tail. */
    @Benchmark
    public void dataThenTailFullFence() {
        Words.DATA.set(1L);
        VarHandle.fullFence();
        Words.TAIL.setOpaque(1L);
    }

    /** The other end of {@link #dataThenTail}: reads tail with acquire, then data. */
    @Benchmark
    public long tailThenData() {
        return (long) Words.TAIL.getAcquire() + (long) Words.DATA.get();
    }

    /** Reads head with acquire, then writes the slot that head reports as free. */
    @Benchmark
    public long headThenSlot() {
        long head = (long) Words.HEAD.getAcquire();
        Words.SLOT.set(head);
        return head;
    }

    /** The other end of {@link #headThenSlot}: resets the slot, then stores head with release. */
    @Benchmark
    public void slotThenHead() {
        Words.SLOT.set(-1L);
        Words.HEAD.setRelease(1L);
    }

    /** {@link #dataThenTail} while the other end polls. */
    @Benchmark
    @Group("tail")
    public void tailPosted() {
        dataThenTail();
    }

    /** {@link #tailThenData} while the other end posts. */
    @Benchmark
    @Group("tail")
    public long tailTaken() {
        return tailThenData();
    }

    /** {@link #dataThenTailVolatile} while the other end polls. */
    @Benchmark
    @Group("tailVolatile")
    public void tailPostedVolatile() {
        dataThenTailVolatile();
    }

    /** {@link #tailThenData} while the other end posts. */
    @Benchmark
    @Group("tailVolatile")
    public long tailTakenVolatile() {
        return tailThenData();
    }

    /** {@link #dataThenTailFullFence} while the other end polls. */
    @Benchmark
    @Group("tailFullFence")
    public void tailPostedFullFence() {
        dataThenTailFullFence();
    }

    /** {@link #tailThenData} while the other end posts. */
    @Benchmark
    @Group("tailFullFence")
    public long tailTakenFullFence() {
        return tailThenData();
    }

    /** {@link #headThenSlot} while the other end frees slots. */
    @Benchmark
    @Group("head")
    public long slotTaken() {
        return headThenSlot();
    }

    /** {@link #slotThenHead} while the other end takes slots. */
    @Benchmark
    @Group("head")
    public void slotFreed() {
        slotThenHead();
    }
}
