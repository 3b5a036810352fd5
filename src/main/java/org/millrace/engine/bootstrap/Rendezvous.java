package org.millrace.engine.bootstrap;

import java.io.IOException;

/** How rank 0 says where it listens, and how the others learn it. */
sealed interface Rendezvous permits FileRendezvous, TcpRendezvous, SplitRendezvous {

    /**
     * Understands {@code file:PATH} and {@code tcp:HOST:PORT}.
     *
     * @throws IllegalArgumentException if it is neither, or not well formed
     */
    static Rendezvous parse(String text, JoinOptions options) {
        if (text.startsWith("file:")) {
            return FileRendezvous.parse(text, options);
        }
        if (text.startsWith("tcp:")) {
            return TcpRendezvous.parse(text, options);
        }
        throw new IllegalArgumentException("rendezvous \"" + text + "\": expected file:PATH or tcp:HOST:PORT");
    }

    /**
     * Rank 0: listens, and lets the others know.
     *
     * @throws org.millrace.MillraceException if that is not possible; the message says why and what to do
     */
    BootstrapListener open(RankIdentity self, int size);

    /**
     * Every other rank: where rank 0 may be.
     *
     * @throws IOException                    if that cannot be known yet; the message says what is missing
     * @throws org.millrace.MillraceException if it will never be known
     */
    ServerAddress find() throws IOException;

    /**
     * True if a place may be that of a group that is gone, so that what listens there need not be rank 0 and a better
     * place may follow.
     */
    boolean mayBeStale();
}
