package org.millrace.plugin;

import java.util.HashMap;
import java.util.Map;
import org.millrace.MillraceException;
import org.millrace.cuda.CudaDriver;

/**
 * A context of a device for copies alone, beside the context that the program and NCCL use. A process has one for each
 * device.
 *
 * <p>
 * A kernel that waits for a copy must not prevent that copy. In a shared context it can, in two ways. First, streams
 * share the device's queues (8 unless CUDA_DEVICE_MAX_CONNECTIONS sets another number), whatever their priorities. A
 * copy then queues behind work of another stream that waits for the kernel. Second, calls that allocate or free memory
 * wait for kernels and hold a lock that copy calls need. (Measured on two H200s, driver 580: with 8 streams that each
 * have a copy pending behind a kernel, copies of a ninth stream of any priority are not made. No copy is made during
 * cudaMalloc, cudaFree, cudaHostAlloc and cudaFreeHost. In a separate context all copies are made, and take as long as
 * in the program's context. The context costs 526 MiB of device memory and 150 ms.)
 *
 * <p>
 * Copied memory must come from {@code cuMemCreate}, be mapped from another process, or be pinned host memory. Memory of
 * {@code cudaMalloc} belongs to its own context.
 */
final class CopyContext implements AutoCloseable {

    private static final Map<Integer, CopyContext> OPEN = new HashMap<>();

    private final CudaDriver driver;
    private final int device;
    private final long handle;
    private int users;

    private CopyContext(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
        handle = driver.newContext(device);
    }

    /**
     * Creates the context of a device, or shares it with its other users.
     *
     * @return the context; each caller must close it
     * @throws MillraceException if the device has no memory for a context
     */
    public static CopyContext open(CudaDriver driver, int device) {
        synchronized (OPEN) {
            CopyContext context = OPEN.computeIfAbsent(device, number -> new CopyContext(driver, number));
            context.users++;
            return context;
        }
    }

    /** {@return the context: a {@code CUcontext}} */
    public long handle() {
        return handle;
    }

    /** Releases the context. The last release destroys it. All work in the context must have ended before. */
    @Override
    public void close() {
        synchronized (OPEN) {
            users--;
            if (users == 0) {
                OPEN.remove(device);
                driver.destroyContext(handle);
            }
        }
    }
}
