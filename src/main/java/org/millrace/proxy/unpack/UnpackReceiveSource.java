package org.millrace.proxy.unpack;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.ProxyException;
import org.millrace.proxy.ReceiveStepSource;
import org.millrace.proxy.StepHeader;

/**
 * Steps to receive as the peer's frames say them; Simple data goes to pages, and the device is given a list of them.
 * Lines go where they always go.
 */
public final class UnpackReceiveSource implements ReceiveStepSource {

    private final ConnectionName name;
    private final ReceiveStepSource slots;
    private final BouncePages pages;
    private final SliceLists lists;
    private final SliceOrder order;
    /** Of the frames under way: a slice's bytes, or 0 for what has no list. */
    private final long[] sizes = new long[ConnectionLayout.SLOTS];
    private final long[] ordinals = new long[ConnectionLayout.SLOTS];
    private final int[] firstPages = new int[ConnectionLayout.SLOTS];
    private long taken;
    private long arrived;
    private long step;
    private long size;
    private boolean posted;
    private boolean simple;

    /**
     * Steps of one connection.
     *
     * @param unpack the pages, and where the device looks for their lists
     * @param slots  where lines go
     */
    public UnpackReceiveSource(ConnectionName name, UnpackMemory unpack, ReceiveStepSource slots) {
        this.name = name;
        this.slots = slots;
        this.pages = unpack.pages();
        this.lists = unpack.lists();
        this.order = new SliceOrder(unpack.firstOrdinal());
    }

    @Override
    public boolean admits(FrameHeader header) {
        if (!slots.admits(header)) {
            return false;
        }
        step = StepHeader.step(header);
        size = header.payloadBytes();
        posted = StepHeader.posted(header);
        simple = size > 0 && StepHeader.protocol(header) == Protocol.SIMPLE.id();
        if (simple && size > pages.room(ConnectionLayout.slot(step), StepHeader.end(header) - step)) {
            throw new ProxyException(name + ": unexpected frame: steps " + step + " to " + StepHeader.end(header)
                    + " with " + size + " bytes, more than their slots hold");
        }
        return true;
    }

    @Override
    public void receive(FrameReceiver receiver) {
        if (simple) {
            pages.receive(receiver, pages.first(ConnectionLayout.slot(step)));
        } else {
            slots.receive(receiver);
        }
    }

    @Override
    public void taken() {
        int index = ConnectionLayout.slot(taken++);
        sizes[index] = simple ? size : 0;
        if (simple) {
            ordinals[index] = order.slice(step);
            firstPages[index] = pages.first(ConnectionLayout.slot(step));
        } else if (size > 0) {
            order.lines(step);
        } else if (posted) {
            order.empty(step);
        }
        slots.taken();
    }

    @Override
    public void arrived() {
        slots.arrived();
        int index = ConnectionLayout.slot(arrived++);
        if (sizes[index] > 0) {
            pages.publish(lists, ordinals[index], firstPages[index], sizes[index]);
        }
    }

    @Override
    public boolean drained() {
        return slots.drained();
    }
}
