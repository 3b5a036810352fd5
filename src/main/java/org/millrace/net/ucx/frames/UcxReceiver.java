package org.millrace.net.ucx.frames;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.ucx.worker.UcxWorkers;

/**
 * The receiving end of a connection over UCX. Buffers wait for headers and short payloads; a long payload is received
 * straight to its destination.
 */
public final class UcxReceiver implements FrameReceiver {

    /** Polls that found nothing between two looks at the connection that tells of the peer's end; a power of two. */
    private static final int LOOK_INTERVAL = 64;

    private final ReceiveEnd end;
    private final FrameHeader header = new FrameHeader();
    /** The header was shown, and its payload has no destination yet. */
    private boolean headerShown;
    private int idlePolls;

    /** A receiver that is told over a connection that was made, to be closed with this, where its sender is. */
    public UcxReceiver(OpenResources network, String name, FrameReceiver found, Network finder, UcxWorkers workers) {
        end = new ReceiveEnd(network, name, found, finder, workers);
        network.opened(end, this::close);
    }

    @Override
    public @Nullable FrameHeader poll() {
        end.checkOpen();
        if (headerShown) {
            return header;
        }
        if (end.takesRest()) {
            headerShown = end.words().next(header);
            return headerShown ? header : null;
        }
        if (end.hasRoom() && end.tryEnter()) {
            try {
                headerShown = end.next(header);
            } finally {
                end.worker().leave();
            }
            if (headerShown) {
                return header;
            }
        }
        lookNowAndThen();
        return null;
    }

    /** After a call that found nothing: what came before a failure counts. */
    private void lookNowAndThen() {
        if (end.hasFailed() || (++idlePolls & LOOK_INTERVAL - 1) == 0 || !end.isConnected()) {
            end.lookAtPeer();
        }
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        end.checkAccept(headerShown);
        end.accept(header.payloadBytes(), region, offset);
        headerShown = false;
    }

    @Override
    public int progress() {
        end.checkOpen();
        if (end.takesRest()) {
            return end.words().progress();
        }
        if (!end.tryEnter()) {
            return 0;
        }
        int work;
        try {
            work = end.advance();
        } finally {
            end.worker().leave();
        }
        if (work == 0) {
            lookNowAndThen();
        }
        return work;
    }

    @Override
    public long framesCompleted() {
        return end.completed();
    }

    @Override
    public boolean storesWholeWords(long bytes) {
        // so much comes with its header whatever the way, and this thread copies it
        return UcxFormat.isInline(bytes, UcxFormat.LEAST_BUFFER_BYTES);
    }

    @Override
    public void close() {
        end.close(end::sayGoodbye);
    }

    @Override
    public String peer() {
        return end.peer();
    }

    @Override
    public void blame(String lostPeer) {
        end.blame(lostPeer);
    }

    @Override
    public String toString() {
        return end.toString();
    }
}
