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

    /** Whether {@link #iallreduce} takes such elements and operators. */
    boolean reduceSupport(DataType type, ReduceOp op);

    /**
     * Begins to reduce; offsets are bytes. Neither memory may be touched until {@link #test} says that the request is
     * done. Count, type and operator are the same on all ranks.
     *
     * @return a handle for {@link #test}, 0 or more; -1 if the network takes no more now
     * @throws org.millrace.net.ConnectionException if the network is lost
     */
    int iallreduce(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long count,
            DataType type, ReduceOp.BuiltIn op);

    /**
     * Makes progress, and says whether a request is done: the result is there, and the rank's elements have left. Its
     * handle then becomes another request's.
     *
     * @throws org.millrace.net.ConnectionException if the network is lost
     */
    boolean test(int request);

    /** Ends this rank's part. May be called twice. */
    @Override
    void close();
}
