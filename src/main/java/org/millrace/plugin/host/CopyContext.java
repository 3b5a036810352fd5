package org.millrace.plugin.host;

import java.util.HashMap;
import java.util.Map;
import org.millrace.MillraceException;
import org.millrace.cuda.driver.CudaDriver;

/**
 * A CUDA context of a device for copies alone, in addition to the context that the program and NCCL use. A process has
 * one copy context for each device.
 *
 * <p>
 * A kernel that waits for a copy must not prevent that copy. In the program's context, a kernel can prevent the copy in
 * two ways. First, streams of all priorities share the device's queues (8 unless CUDA_DEVICE_MAX_CONNECTIONS sets
 * another number). A copy may queue behind another stream's work, and this work may wait for the kernel. Second, calls
 * that allocate or free memory wait for kernels and hold a lock that copy calls need.
 *
 * <p>
 * Both effects were measured on two H200s with driver 580. First, eight streams each had a copy pending behind a
 * kernel. Copies of a ninth stream, of any priority, did not begin. Second, no copy was made during cudaMalloc,
 * cudaFree, cudaHostAlloc and cudaFreeHost. In a separate context all copies were made, and took as long as in the
 * program's context. The context costs 526 MiB of device memory and 150 ms.
 *
 * <p>
 * A copy context can copy memory of {@code cuMemCreate}, memory that is mapped from another process, and pinned host
 * memory. Memory of {@code cudaMalloc} belongs to the program's context and must be copied there.
 */
public final class CopyContext implements AutoCloseable {

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
     * Returns the context of a device. Creates it for the first user and shares it with further users.
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
