package org.millrace.net;

/** Common part of the sending and the receiving end of a connection. */
public interface FrameEnd extends AutoCloseable {

    /**
     * Moves as many bytes as possible without waiting.
     *
     * @return more than 0 if bytes moved
     * @throws ConnectionException if the connection is lost
     */
    int progress();

    /** Returns the peer's address and the network's name, for messages. */
    @Override
    String toString();

    /**
     * {@return a description of the peer process for messages, as far as it is known: {@code "pid 4711 on 10.0.0.2"}}
     */
    default String peer() {
        return "an unknown process";
    }

    /**
     * Records that the connection will be closed because another process was lost. Where the network supports it, the
     * peer receives that process's name. Safe from any thread.
     *
     * @param lostPeer the lost process, as its own connection's {@link #peer} describes it
     */
    default void blame(String lostPeer) {
        // the peer learns only that this process ended the connection
    }

    /** Ends the connection. Safe from any thread, and repeatedly, once the owner makes no more calls. */
    @Override
    void close();

    /** An end that wraps another end. It forwards peer, name and blame to the wrapped end. */
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
