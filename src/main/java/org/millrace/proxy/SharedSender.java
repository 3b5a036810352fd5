package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;

/**
 * Lets the connections of several channels to one peer share one connection of the network
 * ({@code NCCL_NET_SHARED_COMMS}): fewer of the network's connections to poll and to hold open. Frames say whose they
 * are; the {@link SharedReceiver} at the other end deals them out. All members are served by one agent.
 *
 * <p>
 * Frames arrive in one order for all members: a member that waits for its device keeps those behind it waiting. So only
 * connections that run each operation together may share, as the channels of a ring do, and no frame of an operation
 * goes before the last one of the operation before it.
 *
 * <p>
 * Nor may there be too many. A rank of a ring that waits with all slots of a channel full, and as many steps again
 * unsent behind those of other channels, holds four chunks of that channel; if all n ranks wait so for each other, that
 * makes more than 4n chunks. A channel has a chunk for each rank on its way at the most, n: so {@value #MEMBERS}
 * channels, with 4n, cannot reach that.
 */
public final class SharedSender extends SharedEnd {

    /** The most channels of a ring that may share. */
    public static final int MEMBERS = 4;

    private final FrameSender sender;
    private final @Nullable OperationQueue[] queues;

    /**
     * A group on a connection of its own.
     *
     * @param sender the network's connection; closed with the last member
     */
    public SharedSender(FrameSender sender, int members) {
        super(members);
        this.sender = sender;
        this.queues = new OperationQueue[members];
    }

    /**
     * {@return one member's way to the peer, to be given to one {@link SendProxy}}
     *
     * @param member number of the member, the same at the other end
     */
    public FrameSender member(int member, OperationQueue queue) {
        queues[member] = queue;
        return new MemberSender(member);
    }

    /** Whether a member is still to send something for an operation before this one. */
    private boolean isEarly(long opCount) {
        for (OperationQueue queue : queues) {
            if (queue != null && queue.isBehind(opCount)) {
                return true;
            }
        }
        return false;
    }

    @Override
    AutoCloseable shared() {
        return sender;
    }

    @Override
    void closeShared() {
        sender.close();
    }

    private final class MemberSender extends SharingMember implements FrameSender {

        MemberSender(int member) {
            super(member);
        }

        @Override
        public boolean offer(FrameHeader header, MemoryRegion region, long offset) {
            if (isEarly(StepHeader.opCount(header))) {
                return false;
            }
            StepHeader.member(header, member);
            if (!sender.offer(header, region, offset)) {
                return false;
            }
            add();
            return true;
        }

        @Override
        public int progress() {
            return sender.progress();
        }

        @Override
        public long framesCompleted() {
            return completed(sender.framesCompleted());
        }

        @Override
        public void settle() {
            sender.settle();
        }

        /** What one member gives up is lost for all: the peer cannot take one from the order of the others. */
        @Override
        public void abort() {
            sender.abort();
        }
    }
}
