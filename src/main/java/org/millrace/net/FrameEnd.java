package org.millrace.net;

/** What both ends of a connection have in common. */
public interface FrameEnd extends AutoCloseable {

    /**
     * Moves what can be moved without waiting.
     *
     * @return more than 0 if bytes moved
     * @throws ConnectionException if the connection is lost
     */
    int progress();

    /** What this connection leads to, for messages: its peer's address and the network's name. */
    @Override
    String toString();

    /** {@return the process at the other end, as far as it is known, for messages: {@code "pid 4711 on 10.0.0.2"}} */
    default String peer() {
        return "an unknown process";
    }

    /**
     * The connection will be closed because another process was lost: the peer is then told which, where the network
     * can tell it. Safe from any thread.
     *
     * @param lostPeer that process, as its own connection's {@link #peer} names it
     */
    default void blame(String lostPeer) {
        // the peer learns that this process has ended the connection
    }

    /** Ends the connection. Safe from any thread once the owner makes no more calls, and more than once. */
    @Override
    void close();

    /** An end that another one carries: it is named, and blames, as that does. */
    abstract class Carried implements FrameEnd {

        private final FrameEnd wire;

        /** @param wire what carries it */
        protected Carried(FrameEnd wire) {
            this.wire = wire;
        }

        @Override
        public final String peer() {
            return wire.peer();
        }

        @Override
        public final void blame(String lostPeer) {
            wire.blame(lostPeer);
        }

        @Override
        public String toString() {
            return wire.toString();
        }
    }
}
