package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;

/**
 * The receiving end of a network connection that several connections share: the counterpart of a {@link SharedSender}.
 * A member sees only its own frames. A single agent must serve all members.
 */
public final class SharedReceiver extends SharedEnd {

    private final FrameReceiver receiver;

    /** @param receiver the network's receiver, which is closed with the last member */
    public SharedReceiver(FrameReceiver receiver, int members) {
        super(members);
        this.receiver = receiver;
    }

    /** {@return the receiver of one member} One {@link ReceiveProxy} uses the receiver. */
    public FrameReceiver member(int member) {
        return new MemberReceiver(member);
    }

    @Override
    AutoCloseable shared() {
        return receiver;
    }

    @Override
    void closeShared() {
        receiver.close();
    }

    private final class MemberReceiver extends SharingMember implements FrameReceiver {

        MemberReceiver(int member) {
            super(member);
        }

        @Override
        public @Nullable FrameHeader poll() {
            FrameHeader header = receiver.poll();
            if (header == null) {
                return null;
            }
            int owner = StepHeader.member(header);
            if (owner < 0 || owner >= members) {
                throw new ConnectionException(receiver + ": a frame for member " + owner + ", where " + members
                        + " connections share one of the network's");
            }
            return owner == member ? header : null;
        }

        @Override
        public void accept(MemoryRegion region, long offset) {
            receiver.accept(region, offset);
            add();
        }

        @Override
        public int progress() {
            return receiver.progress();
        }

        @Override
        public long framesCompleted() {
            return completed(receiver.framesCompleted());
        }
    }
}
