package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;

/**
 * What both ends of a network's connection have in common that several connections share: whose the frames under way
 * are, as completions come in the order of the frames, and that the last member to go closes the connection.
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
        // a member has no more frames under way than steps, and a power of two wraps without a gap
        this.owners = new int[Integer.highestOneBit(Math.max(1, members * ConnectionLayout.SLOTS - 1)) << 1];
        this.completed = new long[members];
        this.open = members;
    }

    /** The network's connection. */
    abstract AutoCloseable shared();

    /** Ends the network's connection. */
    abstract void closeShared();

    /** One of the connections that share it, as far as both ends are alike. */
    abstract class SharingMember implements AutoCloseable {

        final int member;
        private boolean closed;

        SharingMember(int member) {
            this.member = member;
        }

        /** The network has taken a frame of this member. */
        final void add() {
            owners[(int) (added++ & owners.length - 1)] = member;
        }

        /** How many of this member's frames are complete, where the network has completed so many since it was made. */
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
