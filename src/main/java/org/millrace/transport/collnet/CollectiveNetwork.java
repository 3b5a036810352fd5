package org.millrace.transport.collnet;

import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.net.MemoryRegion;

/**
 * A rank's end of a network that reduces: what is used of NCCL's CollNet plugin table. All ranks make the same calls in
 * the same order. One thread at a time; nothing waits, nothing allocates.
 */
public interface CollectiveNetwork extends AutoCloseable {

    /** Requests under way at the same time: as many as a connection has slots. */
    int REQUESTS = 8;

    /**
     * Whether the network can reduce such elements.
     *
     * @param type element type
     * @param op   how they are combined
     * @return true if {@link #iallreduce} takes them
     */
    boolean reduceSupport(DataType type, ReduceOp op);

    /**
     * Begins to reduce. Neither memory may be touched until {@link #test} says that the request is done.
     *
     * @param send          this rank's elements
     * @param sendOffset    of the first, bytes
     * @param receive       where the result goes
     * @param receiveOffset of its first element, bytes
     * @param count         elements, 0 or more, the same on all ranks
     * @param type          element type, the same on all ranks
     * @param op            how they are combined, the same on all ranks
     * @return a handle for {@link #test}, 0 or more; -1 if the network takes no more now
     * @throws org.millrace.net.ConnectionException if the network is lost
     */
    int iallreduce(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long count,
            DataType type, ReduceOp.BuiltIn op);

    /**
     * Makes progress, and asks for a request.
     *
     * @param request a handle; once it was done it is another request's
     * @return true if the result is there, and the rank's elements have left
     * @throws org.millrace.net.ConnectionException if the network is lost
     */
    boolean test(int request);

    /** Ends this rank's part. May be called twice. */
    @Override
    void close();
}
