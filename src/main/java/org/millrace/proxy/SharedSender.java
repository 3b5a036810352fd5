package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;

/**
 * Lets the connections of several channels to one peer share one network connection ({@code NCCL_NET_SHARED_COMMS}).
 * Fewer network connections must then be polled and kept open. Each frame names its member, and the peer's
 * {@link SharedReceiver} distributes the frames. One agent serves all members.
 *
 * <p>
 * Frames arrive in one order for all members. A member that waits for its device therefore delays the frames behind its
 * own. So only connections that run each operation together may share, as the channels of a ring do. A frame of an
 * operation is sent only after the last frame of the operation before it.
 *
 * <p>
 * The number of members is limited, too. Consider a rank of a ring that waits with all slots of a channel full. The
 * same number of further steps of this channel is unsent behind the steps of other channels. The rank then holds four
 * chunks of that channel. If all n ranks wait for each other in this way, there are more than 4n chunks. A channel has
 * at most n chunks in flight, one for each rank. Therefore {@value #MEMBERS} channels, with 4n chunks, cannot reach
 * that state.
 */
public final class SharedSender extends SharedEnd {

    /** Maximum number of channels of a ring that may share. */
    public static final int MEMBERS = 4;

    private final FrameSender sender;
    private final @Nullable OperationQueue[] queues;

    /**
     * Creates a group on its own network connection.
     *
     * @param sender the network's connection; closed with the last member
     */
    public SharedSender(FrameSender sender, int members) {
        super(members);
        this.sender = sender;
        this.queues = new OperationQueue[members];
    }

    /**
     * {@return the sender of one member, for one {@link SendProxy}}
     *
     * @param member number of the member, the same at the peer
     */
    public FrameSender member(int member, OperationQueue queue) {
        queues[member] = queue;
        return new MemberSender(member);
    }

    /** Returns whether a member still has frames to send for an operation before this one. */
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

        /**
         * Aborts the connection of all members. A frame that one member gives up is lost for all, because the peer
         * cannot remove one frame from the common order.
         */
        @Override
        public void abort() {
            sender.abort();
        }
    }
}
