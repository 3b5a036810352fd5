package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;

/**
 * The sending end of a network connection that the connections of several channels to one peer share
 * ({@code NCCL_NET_SHARED_COMMS}). This reduces the number of network connections that must be polled and kept open.
 * Each frame contains the number of its member. The peer's {@link SharedReceiver} distributes the frames. One agent
 * must serve all members.
 *
 * <p>
 * The frames of all members arrive in one common order. A member that waits for its device therefore delays the later
 * frames of the other members. For this reason, connections may share a network connection only if each operation runs
 * on all of them, as on the channels of a ring. A frame of an operation is sent only after all frames of earlier
 * operations.
 *
 * <p>
 * The number of members is limited to prevent a deadlock around the ring. In such a deadlock, each rank waits because
 * all slots of one of the rank's channels are full. The eight slots hold two chunks. Two further chunks of that channel
 * are not sent yet, because steps of other channels must be sent first. The rank then holds four chunks of that
 * channel. If all n ranks wait for each other in this way, they hold more than 4n chunks. However, a channel has at
 * most n chunks in flight, one for each rank. With {@value #MEMBERS} channels there are at most 4n chunks, so this
 * state is impossible.
 */
public final class SharedSender extends SharedEnd {

    /** Maximum number of a ring's channels that share one network connection. */
    public static final int MEMBERS = 4;

    private final FrameSender sender;
    private final @Nullable OperationQueue[] queues;

    /** @param sender the network's sender, which is closed with the last member */
    public SharedSender(FrameSender sender, int members) {
        super(members);
        this.sender = sender;
        this.queues = new OperationQueue[members];
    }

    /**
     * {@return the sender of one member} One {@link SendProxy} uses the sender.
     *
     * @param member number of the member, the same at the peer
     * @param queue  operations of the member
     */
    public FrameSender member(int member, OperationQueue queue) {
        queues[member] = queue;
        return new MemberSender(member);
    }

    /**
     * Returns whether a frame must wait, because a member has not sent all frames of earlier operations.
     *
     * @param opCount number of the frame's operation
     */
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
         * Aborts the connection of all members. If one member abandons a frame, the others cannot continue, because the
         * peer expects every frame of the common order.
         */
        @Override
        public void abort() {
            sender.abort();
        }
    }
}
