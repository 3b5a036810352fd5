package org.millrace.bootstrap;

/** Message between two ranks. {@link MessageCodec} defines its bytes. */
sealed interface Message {

    /** First message of a rank to rank 0. */
    record Hello(RankIdentity identity, int size, byte[] nonce) implements Message {
    }

    /**
     * Rank 0's answer to {@link Hello}: the identity of rank 0, a proof that rank 0 knows the secret, and a nonce. The
     * {@link Proof} of the joining rank depends on this nonce.
     */
    record Challenge(RankIdentity identity, byte[] nonce, byte[] proof) implements Message {
    }

    /**
     * Decoded form of {@link Hello} or {@link Challenge} if the peer uses another protocol version. Further fields of
     * the message are then unknown.
     */
    record OtherVersion(int version) implements Message {
    }

    /**
     * The joining rank's answer to {@link Challenge}. The answer proves that the joining rank also knows the secret.
     */
    record Proof(byte[] proof) implements Message {
    }

    /** Refusal by rank 0. The reason is a whole sentence. */
    record Rejected(String reason) implements Message {
    }

    /** Report of rank 0 that a rank is present. */
    record Present(RankIdentity identity) implements Message {
    }

    /**
     * Data that one rank contributes to a collective call. On each rank, the sequence numbers begin at 0 and increase
     * by 1.
     */
    record Contribution(int rank, long sequence, Call collective, byte[] data) implements Message {
    }

    /**
     * Message from one rank to another. In each direction between two ranks, a tag is used again only after its
     * previous message was read.
     */
    record PeerMessage(int from, int to, long tag, byte[] data) implements Message {
    }

    /**
     * Failure or loss of a rank. A failed rank sends its own description. When rank 0 relays the message, it adds the
     * rank and the process to the description.
     */
    record Failed(RemoteFailure failure) implements Message {
    }

    /**
     * Offer with the address at which this side recovers a lost stream; empty if this side does not recover it. Rank 0
     * sends its offer first. After the offers, both sides keep all frames that the peer has not acknowledged by
     * {@link Received}.
     */
    record Recovery(byte[] offer) implements Message {
    }

    /** Acknowledgement: the number of the peer's frames that this side has received since the handshake. */
    record Received(long frames) implements Message {
    }

    /** Report that a rank leaves, which is not a failure. It is the last message that the leaving rank sends. */
    record Departed(int rank) implements Message {
    }

    /** Calls that a rank makes together with all other ranks. The ordinal of a constant is sent over the network. */
    enum Call {
        ALL_GATHER("allGather"), BARRIER("barrier"), SPLIT("split"), CLOSE("close");

        final String call;

        Call(String call) {
            this.call = call;
        }
    }
}
