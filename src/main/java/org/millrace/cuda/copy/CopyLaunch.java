package org.millrace.cuda.copy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.cuda.CudaKernel;
import org.millrace.cuda.KernelParameters;
import org.millrace.cuda.LaunchShape;

/**
 * A launch of the kernel that makes many copies at once, {@code copy_batch} of {@code src/main/cuda/copy.cu}: what is
 * to be copied is its argument. One thread.
 */
final class CopyLaunch {

    /** As many copies fit into the arguments of one launch. */
    static final int MOST = 128;
    /** A longer copy is better off with a copy engine. */
    static final long LONGEST = 256 << 10;

    private static final int WORDS = 3;
    private static final LaunchShape SHAPE = LaunchShape.of(24, 512);
    private static final MemoryLayout BATCH =
            MemoryLayout.structLayout(MemoryLayout.sequenceLayout(MOST * WORDS + 1, ValueLayout.JAVA_LONG));

    private final CudaKernel kernel;
    private final MemorySegment batch;
    private final KernelParameters arguments;

    CopyLaunch(CudaKernel kernel, Arena arena) {
        this.kernel = kernel;
        batch = arena.allocate(BATCH);
        arguments = KernelParameters.allocate(arena, BATCH);
    }

    /** Says what a copy is, of those that are launched next. */
    void set(int index, long to, long from, long bytes) {
        batch.setAtIndex(ValueLayout.JAVA_LONG, (long) index * WORDS, to);
        batch.setAtIndex(ValueLayout.JAVA_LONG, (long) index * WORDS + 1, from);
        batch.setAtIndex(ValueLayout.JAVA_LONG, (long) index * WORDS + 2, bytes);
    }

    /** Enqueues the first copies of those that were set. */
    void launch(int count, MemorySegment stream) {
        batch.setAtIndex(ValueLayout.JAVA_LONG, (long) MOST * WORDS, count);
        kernel.launch(SHAPE, arguments.struct(0, batch), stream);
    }
}
