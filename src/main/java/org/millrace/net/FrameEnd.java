package org.millrace.net;

/** An end of a connection. Common part of the sending and the receiving end. */
public interface FrameEnd extends AutoCloseable {

    /**
     * Moves as many bytes as possible without waiting.
     *
     * @return more than 0 if bytes moved, otherwise 0
     * @throws ConnectionException if the connection is lost
     */
    int progress();

    /** Returns the peer's address and the network's name, for messages. */
    @Override
    String toString();

    /**
     * {@return a description of the peer process for messages, for instance {@code "pid 4711 on 10.0.0.2"}} The
     * description contains what this end knows about the process.
     */
    default String peer() {
        return "an unknown process";
    }

    /**
     * Records that this connection will be closed because another process was lost. The peer of this connection
     * receives the description of that process, if the network can send it. Safe from any thread.
     *
     * @param lostPeer description of the lost process: the result of {@link #peer} of the connection to that process
     */
    default void blame(String lostPeer) {
        // This default method does nothing. The peer then learns that this process ended the connection, but not the
        // name of the lost process.
    }

    /**
     * Ends the connection. May be called by any thread, and repeatedly, but only after the owner's last call of any
     * other method.
     */
    @Override
    void close();

    /** An end that wraps another end. It forwards calls of {@link #peer} and {@link #blame} to the wrapped end. */
    abstract class Carried implements FrameEnd {

        private final FrameEnd wire;

        /** @param wire the wrapped end */
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
