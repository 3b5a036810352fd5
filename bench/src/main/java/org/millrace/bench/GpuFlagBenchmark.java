package org.millrace.bench;

import java.io.IOException;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.gpu.FlagMemory;
import org.millrace.bench.measure.Loop;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.openjdk.jmh.annotations.Param;

/**
 * Flags between a GPU and the host: a kernel stores {@code tail} and waits for {@code head}, the host answers. The time
 * of a batch includes one launch.
 */
public class GpuFlagBenchmark extends LoopBenchmark {

    /** Whether tail is stored behind {@code __threadfence_system}, as by a kernel whose data must be seen first. */
    @Param({"false", "true"})
    public boolean fence;

    @Override
    Loop loop(CLibrary c) throws IOException {
        CudaDevice device = CudaRuntime.load().device(0);
        opened(device.makeCurrent());
        FlagMemory memory = new FlagMemory(device);
        return c == null ? memory.answeredByJava(fence, null) : memory.answeredByC(fence, null, c);
    }
}
