package org.millrace.collnet;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.net.MemoryRegion;

/**
 * A rank's end of a network that reduces: what is used of NCCL's CollNet plugin table. All ranks make the same calls in
 * the same order. One thread at a time; nothing waits, nothing allocates. Offsets and lengths are bytes.
 */
public interface CollectiveNetwork extends AutoCloseable {

    /** What a request returns that cannot be begun now. */
    int NO_REQUEST = -1;
    /** What {@link #test} returns for a request that is not done. */
    long PENDING = -1;

    /**
     * Makes memory ready for requests.
     *
     * @param memory native memory whose lifetime is longer than the region's
     * @return the region
     */
    MemoryRegion register(MemorySegment memory);

    /**
     * Begins to reduce the elements of all ranks, into the memory of each. The two memories may be the same; neither
     * may be touched until {@link #test} says that the request is done. Count, type and operator are the same on all
     * ranks.
     *
     * @return a handle for {@link #test}, 0 or more; or {@link #NO_REQUEST}
     * @throws org.millrace.net.ConnectionException if the network is lost
     */
    int iallreduce(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long count,
            DataType type, ReduceOp.BuiltIn op);

    /**
     * Begins to gather a window of what all ranks' parts are when they lie one behind the other.
     *
     * @param sendOffset    of that part of the window which is this rank's
     * @param receiveOffset of the window
     * @param bytesPerRank  length of each rank's part
     * @param windowOffset  in all parts together
     * @return a handle for {@link #test}, 0 or more; or {@link #NO_REQUEST}
     * @throws org.millrace.net.ConnectionException if the network is lost
     */
    int iallgather(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long bytesPerRank,
            long windowOffset, long windowBytes);

    /**
     * Begins to reduce a window of buffers that have a part for each rank, into the memory of the rank whose part it
     * is.
     *
     * @param sendOffset    of the window
     * @param receiveOffset of that part of the window which is this rank's
     * @param bytesPerRank  length of each rank's part
     * @param windowOffset  in all parts together
     * @return a handle for {@link #test}, 0 or more; or {@link #NO_REQUEST}
     * @throws org.millrace.net.ConnectionException if the network is lost
     */
    int ireducescatter(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long bytesPerRank,
            long windowOffset, long windowBytes, DataType type, ReduceOp.BuiltIn op);

    /**
     * Makes progress, and looks whether a request is done: its results are there, and nobody reads this rank's memory
     * any more. Its handle then becomes another request's.
     *
     * @return its length in bytes, or {@link #PENDING}
     * @throws org.millrace.net.ConnectionException if the network is lost
     * @throws org.millrace.MismatchException       if ranks have asked for different things
     */
    long test(int request);

    /** Ends this rank's part: when this returns, no memory of its requests is touched. May be called twice. */
    @Override
    void close();
}
