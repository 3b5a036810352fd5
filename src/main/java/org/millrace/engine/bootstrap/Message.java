package org.millrace.engine.bootstrap;

/** Message between two ranks. {@link MessageCodec} defines its bytes. */
sealed interface Message {

    /** First message of a rank to rank 0. */
    record Hello(int rank, int size, long pid, String host, byte[] nonce) implements Message {

        RankIdentity identity() {
            return new RankIdentity(rank, pid, host);
        }
    }

    /** Rank 0's answer: its identity, a proof that it knows the secret, and a nonce for the other side's proof. */
    record Challenge(long pid, String host, byte[] nonce, byte[] proof) implements Message {

        RankIdentity identity() {
            return new RankIdentity(0, pid, host);
        }
    }

    /** Replaces {@link Hello} or {@link Challenge} if the peer speaks another version with unknown further fields. */
    record OtherVersion(int version) implements Message {
    }

    /** The other rank's answer, which proves that it knows the secret, too. */
    record Proof(byte[] proof) implements Message {
    }

    /** Refusal by rank 0. The reason is a whole sentence. */
    record Rejected(String reason) implements Message {
    }

    /** Presence of a rank. */
    record Present(RankIdentity identity) implements Message {
    }

    /** Part of one rank in a collective call. Sequence numbers begin at 0 and increase by 1, equally on all ranks. */
    record Contribution(int rank, long sequence, Call collective, byte[] data) implements Message {
    }

    /** Message from one rank to another. A tag is used once in each direction between two ranks. */
    record PeerMessage(int from, int to, long tag, byte[] data) implements Message {
    }

    /**
     * Failure or loss of a rank. A rank reports its own failure in its own text. When rank 0 relays it, it adds rank
     * and process.
     */
    record Failed(RemoteFailure failure) implements Message {
    }

    /**
     * Address at which this side recovers a lost connection; empty if it does not. Rank 0 sends it first. From then on,
     * both sides keep all frames that the peer has not acknowledged by {@link Received}.
     */
    record Recovery(byte[] offer) implements Message {
    }

    /** Number of the peer's frames that this side has received since the handshake. */
    record Received(long frames) implements Message {
    }

    /** A rank leaves, which is not a failure. The last message of a connection. */
    record Departed(int rank) implements Message {
    }

    /** Calls that a rank makes together with all others. The ordinal is sent on the wire. */
    enum Call {
        ALL_GATHER("allGather"), BARRIER("barrier"), SPLIT("split"), CLOSE("close");

        final String call;

        Call(String call) {
            this.call = call;
        }
    }
}
