package org.millrace.proxy;

import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;

/**
 * The receiving end of a {@link SenderGroup}: one connection of the network serves the receives of several connections,
 * each of which sees its own frames only (a grouped receive). All members are served by one agent.
 */
public final class ReceiverGroup {

    private final FrameReceiver receiver;
    private final FrameOwners owners;
    private final int members;
    private int open;

    /**
     * A group on a connection of its own.
     *
     * @param receiver the network's connection; closed with the last member
     * @param members  how many share it
     */
    public ReceiverGroup(FrameReceiver receiver, int members) {
        this.receiver = receiver;
        this.owners = new FrameOwners(members);
        this.members = members;
        this.open = members;
    }

    /**
     * One member's way from the peer.
     *
     * @param member number of the member, the same at the other end
     * @return to be given to one {@link ReceiveProxy}
     */
    public FrameReceiver member(int member) {
        return new Member(member);
    }

    private final class Member implements FrameReceiver {

        private final int member;
        private boolean closed;

        Member(int member) {
            this.member = member;
        }

        @Override
        public FrameHeader poll() {
            FrameHeader header = receiver.poll();
            if (header == null) {
                return null;
            }
            int whose = StepHeader.member(header);
            if (whose < 0 || whose >= members) {
                throw new ConnectionException(receiver + ": a frame for member " + whose + ", where " + members
                        + " connections share one of the network's");
            }
            return whose == member ? header : null;
        }

        @Override
        public void accept(MemoryRegion region, long offset) {
            receiver.accept(region, offset);
            owners.add(member);
        }

        @Override
        public int progress() {
            return receiver.progress();
        }

        @Override
        public long framesCompleted() {
            owners.complete(receiver.framesCompleted());
            return owners.completed(member);
        }

        @Override
        public void close() {
            if (!closed) {
                closed = true;
                if (--open == 0) {
                    receiver.close();
                }
            }
        }

        @Override
        public String toString() {
            return receiver + ", member " + member;
        }
    }
}
