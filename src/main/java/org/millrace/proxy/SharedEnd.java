package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;

/**
 * Common part of both ends of a network connection that several connections share. It records the owners of the frames
 * in flight, because completions arrive in the order of the frames. The last member that is closed closes the
 * connection.
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
        // a member has no more frames in flight than steps, and an index modulo a power of two wraps without a gap
        this.owners = new int[Integer.highestOneBit(Math.max(1, members * ConnectionLayout.SLOTS - 1)) << 1];
        this.completed = new long[members];
        this.open = members;
    }

    /** Returns the network's connection. */
    abstract AutoCloseable shared();

    /** Closes the network's connection. */
    abstract void closeShared();

    /** One of the connections that share the network's connection: the part that is common to both ends. */
    abstract class SharingMember implements AutoCloseable {

        final int member;
        private boolean closed;

        SharingMember(int member) {
            this.member = member;
        }

        /** Records that the network has accepted a frame of this member. */
        final void add() {
            owners[(int) (added++ & owners.length - 1)] = member;
        }

        /**
         * Returns the number of completed frames of this member.
         *
         * @param frames number of frames that the network has completed since its connection was made
         */
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
