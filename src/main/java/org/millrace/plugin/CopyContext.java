package org.millrace.plugin;

import java.util.HashMap;
import java.util.Map;
import org.millrace.MillraceException;
import org.millrace.cuda.CudaDriver;

/**
 * A context of a device for copies alone, beside the one that the program and NCCL use; one a device and process.
 *
 * <p>
 * A kernel that waits for a copy must not keep that copy from being made, and in a context that both share it can, in
 * two ways. Streams share some queues of the device's (8 unless CUDA_DEVICE_MAX_CONNECTIONS says otherwise), whatever
 * their priorities: a copy stands behind whatever another stream has there that waits for the kernel. And memory that
 * is allocated or freed waits for kernels, while it holds a lock that the calls for copies need. (Two H200s, driver
 * 580: with 8 streams that each have a copy pending behind a kernel, copies of a ninth stream of any priority are not
 * made; and during cudaMalloc, cudaFree, cudaHostAlloc and cudaFreeHost none is. In a context of their own all are, and
 * take as long as in the program's. It costs 526 MiB of the device's memory and 150 ms.)
 *
 * <p>
 * What is copied must be memory of {@code cuMemCreate}, mapped memory of other processes, or pinned memory of the
 * host's: that of {@code cudaMalloc} belongs to its own context.
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
     * Makes the context of a device, or shares it with its other users.
     *
     * @return the context, to be closed by each who has called this
     * @throws MillraceException if the device has no room for one
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

    /** Gives it back; the last that does ends it, and all that is in it must have ended before. */
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
