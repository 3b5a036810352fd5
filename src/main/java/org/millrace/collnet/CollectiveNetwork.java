package org.millrace.collnet;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.net.MemoryRegion;

/**
 * A rank's end of a network that reduces: the functions that are used of NCCL's CollNet plugin table. All ranks make
 * the same calls in the same order. Only one thread may call at a time. No method blocks or allocates. Offsets and
 * lengths are bytes.
 */
public interface CollectiveNetwork extends AutoCloseable {

    /** Return value for a request that cannot begin now. */
    int NO_REQUEST = -1;
    /** Return value of {@link #test} for a request that is not done. */
    long PENDING = -1;

    /**
     * Registers memory for requests.
     *
     * @param memory native memory that lives longer than the region
     * @return the region
     */
    MemoryRegion register(MemorySegment memory);

    /**
     * Begins to reduce the elements of all ranks, into the memory of each rank. The two memories may be the same.
     * Neither may be accessed until {@link #test} reports that the request is done. Count, type and operator are the
     * same on all ranks.
     *
     * @return a handle for {@link #test}, 0 or more; or {@link #NO_REQUEST}
     * @throws org.millrace.net.ConnectionException if the connection to the network is lost
     */
    int iallreduce(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long count,
            DataType type, ReduceOp.BuiltIn op);

    /**
     * Begins to gather a window of the concatenation of all ranks' parts.
     *
     * @param sendOffset    offset of this rank's part of the window
     * @param receiveOffset offset of the window
     * @param bytesPerRank  length of each rank's part
     * @param windowOffset  offset of the window in the concatenation of all parts
     * @return a handle for {@link #test}, 0 or more; or {@link #NO_REQUEST}
     * @throws org.millrace.net.ConnectionException if the connection to the network is lost
     */
    int iallgather(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long bytesPerRank,
            long windowOffset, long windowBytes);

    /**
     * Begins to reduce a window of buffers that have a part for each rank. Each part is reduced into the memory of its
     * rank.
     *
     * @param sendOffset    offset of the window
     * @param receiveOffset offset of this rank's part of the window
     * @param bytesPerRank  length of each rank's part
     * @param windowOffset  offset of the window in the concatenation of all parts
     * @return a handle for {@link #test}, 0 or more; or {@link #NO_REQUEST}
     * @throws org.millrace.net.ConnectionException if the connection to the network is lost
     */
    int ireducescatter(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long bytesPerRank,
            long windowOffset, long windowBytes, DataType type, ReduceOp.BuiltIn op);

    /**
     * Makes progress, and checks whether a request is done. The results of a completed request are visible, and no
     * thread or peer reads this rank's memory for it. Its handle may then be reused for another request.
     *
     * @return its length in bytes, or {@link #PENDING}
     * @throws org.millrace.net.ConnectionException if the connection to the network is lost
     * @throws org.millrace.MismatchException       if ranks have made different requests
     */
    long test(int request);

    /**
     * Ends this rank's part. When this method returns, no thread accesses the memory of its requests. May be called
     * twice.
     */
    @Override
    void close();
}
