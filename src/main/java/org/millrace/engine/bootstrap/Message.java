package org.millrace.engine.bootstrap;

/** What two ranks say to each other. {@link MessageCodec} knows the bytes. */
sealed interface Message {

    /** A rank to rank 0, first of all. */
    record Hello(int rank, int size, long pid, String host, byte[] nonce) implements Message {

        RankIdentity identity() {
            return new RankIdentity(rank, pid, host);
        }
    }

    /** Rank 0's answer: who it is, that it knows the secret, and a nonce so that the other side can show the same. */
    record Challenge(long pid, String host, byte[] nonce, byte[] proof) implements Message {

        RankIdentity identity() {
            return new RankIdentity(0, pid, host);
        }
    }

    /**
     * Instead of {@link Hello} or {@link Challenge}: the other side speaks another version, whose further fields are
     * not known.
     */
    record OtherVersion(int version) implements Message {
    }

    /** The other rank's answer: it knows the secret too. */
    record Proof(byte[] proof) implements Message {
    }

    /** Rank 0 does not let the other side in; the reason is a whole sentence. */
    record Rejected(String reason) implements Message {
    }

    /** A rank is there. */
    record Present(RankIdentity identity) implements Message {
    }

    /** One rank's part of a collective call. Sequence numbers begin at 0 and grow by 1 for every rank alike. */
    record Contribution(int rank, long sequence, Call collective, byte[] data) implements Message {
    }

    /** From one rank to one other. A tag is used once in each direction between two ranks. */
    record PeerMessage(int from, int to, long tag, byte[] data) implements Message {
    }

    /**
     * A rank failed or was lost. What a rank says of itself is its own text; what rank 0 passes on names rank and
     * process as well.
     */
    record Failed(RemoteFailure failure) implements Message {
    }

    /**
     * Where this side makes the connection again when it is lost; empty if it does not. From rank 0 first; both keep
     * from then on what the other has not {@link Received}.
     */
    record Recovery(byte[] offer) implements Message {
    }

    /** How many frames of the other side have come, since the handshake. */
    record Received(long frames) implements Message {
    }

    /** A rank leaves, and that is no failure. The last message of a connection. */
    record Departed(int rank) implements Message {
    }

    /** What a rank may call together with all others. On the wire by its ordinal. */
    enum Call {
        ALL_GATHER("allGather"), BARRIER("barrier"), SPLIT("split"), CLOSE("close");

        final String call;

        Call(String call) {
            this.call = call;
        }
    }
}
