package org.millrace.collnet;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.net.MemoryRegion;

/**
 * A rank's end of a network that reduces. The methods are the functions of NCCL's CollNet plugin table that Millrace
 * uses. All ranks make the same calls in the same order. Only one thread may call at a time. No method blocks or
 * allocates. Offsets and lengths are in bytes.
 */
public interface CollectiveNetwork extends AutoCloseable {

    /** Return value of a method that makes a request. It means that the request cannot begin now. */
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
     * Begins an all-reduce: reduces the elements of all ranks, and stores the result in the memory of each rank. Send
     * and receive memory may be the same. Neither memory may be accessed until {@link #test} reports that the request
     * is done. Count, type and operator are the same on all ranks.
     *
     * @return a handle for {@link #test}, 0 or more; or {@link #NO_REQUEST}
     * @throws org.millrace.net.ConnectionException if the connection to the network is lost
     */
    int iallreduce(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long count,
            DataType type, ReduceOp.BuiltIn op);

    /**
     * Begins an all-gather of a window. Here, a window is a range of a buffer. The buffer contains the parts of all
     * ranks, one after the other. Each rank receives the bytes of this range.
     *
     * @param sendOffset    offset in the send memory: location of the first byte that lies both in this rank's part and
     *                      in the window
     * @param receiveOffset offset in the receive memory at which the stored window begins
     * @param bytesPerRank  length of each rank's part
     * @param windowOffset  offset of the window in the concatenation of all parts
     * @return a handle for {@link #test}, 0 or more; or {@link #NO_REQUEST}
     * @throws org.millrace.net.ConnectionException if the connection to the network is lost
     */
    int iallgather(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long bytesPerRank,
            long windowOffset, long windowBytes);

    /**
     * Begins a reduce-scatter of a window. Each rank has a buffer with a part for each rank. Here, a window is a range
     * of this buffer. The bytes of each part that lie in the window are reduced over all ranks. The result is stored in
     * the memory of the rank to which the part belongs.
     *
     * @param sendOffset    offset in the send memory at which the window begins
     * @param receiveOffset offset in the receive memory: destination of the first byte that lies both in this rank's
     *                      part and in the window
     * @param bytesPerRank  length of each rank's part
     * @param windowOffset  offset of the window in the concatenation of all parts
     * @return a handle for {@link #test}, 0 or more; or {@link #NO_REQUEST}
     * @throws org.millrace.net.ConnectionException if the connection to the network is lost
     */
    int ireducescatter(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long bytesPerRank,
            long windowOffset, long windowBytes, DataType type, ReduceOp.BuiltIn op);

    /**
     * Makes progress, and checks whether a request is done. The results of a completed request are visible, and no
     * thread or peer reads this rank's memory for the request any longer. The handle of the completed request may be
     * reused for another request.
     *
     * @return length of the request in bytes, or {@link #PENDING}
     * @throws org.millrace.net.ConnectionException if the connection to the network is lost
     * @throws org.millrace.MismatchException       if ranks have made different requests
     */
    long test(int request);

    /**
     * Ends this rank's membership in the network. When this method returns, no thread accesses the memory of this
     * rank's requests. May be called twice.
     */
    @Override
    void close();
}
