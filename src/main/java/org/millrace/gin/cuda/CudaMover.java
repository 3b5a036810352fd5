package org.millrace.gin.cuda;

import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaDriver;
import org.millrace.cuda.copy.CopyKernel;
import org.millrace.cuda.copy.CopyQueue;
import org.millrace.net.Network;

/**
 * What moves the bytes of one device's windows: a queue of copies for each direction, so that what leaves does not wait
 * for what comes, and staging buffers. One agent's thread uses it, with the device current.
 */
public final class CudaMover implements AutoCloseable {

    private static final int BUFFERS = 64;

    private final CopyQueue out;
    private final CopyQueue in;
    private final CopyQueue direct;
    private final Staging staging;

    /**
     * A mover with nothing to move.
     *
     * @param driver     the driver's functions
     * @param device     whose memory is moved
     * @param network    what carries staged bytes
     * @param chunkBytes of {@link org.millrace.gin.GinOptions}
     * @param kernel     of the device that makes small copies, or null
     */
    public CudaMover(CudaDriver driver, CudaDevice device, Network network, long chunkBytes, CopyKernel kernel) {
        out = new CopyQueue(driver, device, kernel);
        in = new CopyQueue(driver, device, kernel);
        direct = new CopyQueue(driver, device, kernel);
        staging = new Staging(device, network, BUFFERS, chunkBytes, new StagingCopies(out, in));
    }

    CopyQueue out() {
        return out;
    }

    CopyQueue in() {
        return in;
    }

    CopyQueue direct() {
        return direct;
    }

    Staging staging() {
        return staging;
    }

    /** Waits until no copy is under way; from any thread. */
    public void settle() {
        out.settle();
        in.settle();
        direct.settle();
    }

    @Override
    public void close() {
        out.close();
        in.close();
        direct.close();
        staging.close();
    }
}
