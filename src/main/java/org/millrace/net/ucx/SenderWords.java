package org.millrace.net.ucx;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.connection.LostPeerName;

/**
 * Reader of the messages that a sender sends over the setup connection, see {@link UcxEnd}. The messages are the
 * sender's hello, its shutdown message, and the name of a peer that the sender has lost. A sender that closes before
 * the receiver has answered also sends its frames over the setup connection. Used by one thread.
 */
final class SenderWords {

    private final UcxEnd end;
    private final FrameReceiver found;
    private final Network finder;

    private final FrameHeader hello = new FrameHeader();
    private @Nullable MemoryRegion address;

    /** Number of frames sent over UCX, from the sender's shutdown message; -1 before that message. */
    private long last = -1;
    private long saidLastAt;
    private boolean lostPeerFollows;
    private @Nullable String lostPeer;
    /** Number of frames that follow the shutdown message on the setup connection. */
    private long rest;
    /** Number of messages that have arrived on the setup connection before the frames of {@link #rest}. */
    private long before;
    private long accepted;
    private @Nullable MemoryRegion all;

    SenderWords(UcxEnd end, FrameReceiver found, Network finder) {
        this.end = end;
        this.found = found;
        this.finder = finder;
    }

    /** Returns the address of the sender's worker; null until it has arrived. */
    @Nullable
    MemorySegment address() {
        return address == null || found.framesCompleted() == 0 ? null : address.segment();
    }

    /** Returns the sender's hello. Valid only after {@link #address} has returned an address. */
    FrameHeader hello() {
        return hello;
    }

    boolean sentShutdown() {
        return last >= 0 && !lostPeerFollows;
    }

    long last() {
        return last;
    }

    long nanosSinceShutdown() {
        return System.nanoTime() - saidLastAt;
    }

    /** Returns the name of a lost peer that was the sender's reason to close; null if the sender had another reason. */
    @Nullable
    String lostPeer() {
        return lostPeer;
    }

    /** Reads the messages that have arrived. Throws if the setup connection has ended. */
    void listen() {
        int ignored = found.progress();
        FrameHeader said = hasRest() ? null : found.poll();
        while (said != null) {
            take(said);
            said = hasRest() ? null : found.poll();
        }
    }

    private void take(FrameHeader said) {
        if (lostPeerFollows) {
            lostPeerFollows = false;
            lostPeer = LostPeerName.read(said::word);
            acceptWord(said);
        } else if (said.word(0) == UcxFormat.ABORT) {
            throw end.lost("the peer has aborted it", null);
        } else if (address == null && said.word(0) != UcxFormat.SHUTDOWN) {
            UcxFormat.check(end.toString(), UcxFormat.HELLO, said.word(0));
            if (said.payloadBytes() < 1 || said.payloadBytes() > UcxFormat.MAX_ADDRESS_BYTES) {
                throw end.notProtocol("a worker's address of " + said.payloadBytes() + " bytes");
            }
            hello.set(said);
            before++;
            address = finder.register(end.arena.allocate(said.payloadBytes(), Long.BYTES));
            found.accept(address, 0);
        } else {
            UcxFormat.check(end.toString(), UcxFormat.SHUTDOWN, said.word(0));
            if (last >= 0 || said.word(1) < 0 || said.word(3) < 0 || said.word(3) > UcxFormat.FRAMES) {
                throw end.notProtocol(
                        "a shutdown message after " + said.word(1) + " frames with " + said.word(3) + " to follow");
            }
            last = said.word(1);
            lostPeerFollows = said.word(2) != 0;
            rest = said.word(3);
            saidLastAt = System.nanoTime();
            acceptWord(said);
        }
    }

    private void acceptWord(FrameHeader said) {
        if (said.payloadBytes() != 0) {
            throw end.notProtocol("a shutdown message with " + said.payloadBytes() + " bytes");
        }
        before++;
        found.accept(null, 0);
    }

    /** Returns whether a frame that follows the shutdown message has not arrived completely. */
    boolean hasRest() {
        return rest > 0 && !lostPeerFollows && framesCompleted() < rest;
    }

    long framesCompleted() {
        return rest == 0 || lostPeerFollows ? 0 : found.framesCompleted() - before;
    }

    boolean next(FrameHeader header) {
        try {
            FrameHeader next = accepted == rest ? null : found.poll();
            if (next == null) {
                return false;
            }
            header.set(next);
            return true;
        } catch (ConnectionException e) {
            throw end.ended(e);
        }
    }

    void accept(long bytes, long destination) {
        if (bytes > 0 && all == null) {
            all = finder.allMemory();
        }
        found.accept(bytes == 0 ? null : all, destination);
        accepted++;
    }

    int progress() {
        try {
            return found.progress();
        } catch (ConnectionException e) {
            throw end.ended(e);
        }
    }

    void sendShutdown(@Nullable String blamed) {
        if (blamed != null) {
            found.blame(blamed);
        }
        found.close();
    }

    void close() {
        found.close();
        if (all != null) {
            all.close();
        }
        if (address != null) {
            address.close();
        }
    }
}
