package org.millrace.net.auto;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Pages;

/** A receiver of one of the two networks, which takes regions of both. */
final class AutoReceiver implements FrameReceiver {

    private final FrameReceiver receiver;
    private final boolean overShm;
    /** The pages last used, and the same in the network's own region. */
    private @Nullable Pages given;
    private @Nullable Pages part;

    AutoReceiver(FrameReceiver receiver, boolean overShm) {
        this.receiver = receiver;
        this.overShm = overShm;
    }

    @Override
    public @Nullable FrameHeader poll() {
        return receiver.poll();
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        receiver.accept(AutoNetwork.part(region, overShm), offset);
    }

    @Override
    public boolean scatters() {
        return receiver.scatters();
    }

    @Override
    public void acceptScattered(Pages pages, int first) {
        Pages own = part;
        if (own == null || pages != given) {
            MemoryRegion region = Objects.requireNonNull(AutoNetwork.part(pages.region(), overShm));
            own = new Pages(region, pages.offsets(), pages.bytesEach());
            given = pages;
            part = own;
        }
        receiver.acceptScattered(own, first);
    }

    @Override
    public int progress() {
        return receiver.progress();
    }

    @Override
    public long framesCompleted() {
        return receiver.framesCompleted();
    }

    @Override
    public boolean storesWholeWords() {
        return receiver.storesWholeWords();
    }

    @Override
    public void close() {
        receiver.close();
    }

    @Override
    public String toString() {
        return receiver.toString();
    }
}
