package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;

/**
 * One end of a network connection that several connections, its members, share. This class is the common part of the
 * sending and the receiving end. It records the member of each frame in flight. The network completes frames in the
 * order in which the frames were accepted. The record therefore assigns each completion to a member. The network
 * connection is closed when the last member is closed.
 */
abstract sealed class SharedEnd permits SharedSender, SharedReceiver {

    final int members;
    private final int[] owners;
    private final long[] completed;
    private long added;
    private long removed;
    private int open;

    SharedEnd(int members) {
        this.members = members;
        // A member has at most one frame in flight for each slot. The array's length is a power of two, so that an
        // index computed by a mask stays valid when the counter wraps.
        this.owners = new int[Integer.highestOneBit(Math.max(1, members * ConnectionLayout.SLOTS - 1)) << 1];
        this.completed = new long[members];
        this.open = members;
    }

    abstract AutoCloseable shared();

    /** Closes the network's sender or receiver. */
    abstract void closeShared();

    /** One member: one of the connections that share the network connection. */
    abstract class SharingMember implements AutoCloseable {

        final int member;
        private boolean closed;

        SharingMember(int member) {
            this.member = member;
        }

        /** Records that the network has accepted a frame of this member, the newest of the frames in flight. */
        final void add() {
            owners[(int) (added++ & owners.length - 1)] = member;
        }

        /** @param frames number of frames that the network has completed, for all members together */
        final long completed(long frames) {
            while (removed != frames) {
                completed[owners[(int) (removed++ & owners.length - 1)]]++;
            }
            return completed[member];
        }

        @Override
        public final void close() {
            if (!closed) {
                closed = true;
                if (--open == 0) {
                    closeShared();
                }
            }
        }

        @Override
        public final String toString() {
            return shared() + ", member " + member;
        }
    }
}
