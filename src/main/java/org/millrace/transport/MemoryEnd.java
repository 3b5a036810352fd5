package org.millrace.transport;

import java.lang.foreign.Arena;
import java.util.List;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.proxy.CopyProxy;
import org.millrace.proxy.OperationQueue;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ProxyOp;

/**
 * An end of a connection whose slots and counters lie in memory that both ends reach.
 *
 * <pre>
 *   direct             sending device ─────────▶ common memory ─────────▶ receiving device
 *   the sender copies  sending device ▶ its own ▶ proxy ▶ common memory ▶ receiving device
 *   the receiver copies                          common memory ▶ proxy ▶ its own ▶ receiving device
 * </pre>
 *
 * Directly, {@code head} and {@code tail} go from device to device, and nobody is told of a step; how the two ranks run
 * the same operation is checked when it is announced ({@link OperationCheck}).
 */
final class MemoryEnd implements TransportEnd {

    private final EndRequest request;
    private final CommonMemory.Source source;
    private final boolean owns;
    private final boolean copies;
    private final OperationQueue operations = new OperationQueue();
    private CommonMemory common;
    private ConnectionInfo shared;
    private OperationCheck check;
    private Arena arena;
    private ConnectionInfo own;
    private CopyProxy proxy;

    /**
     * An end.
     *
     * @param owns   whether this end makes the memory; the other one does not
     * @param copies whether a proxy of this end copies between the common memory and memory of its own
     */
    MemoryEnd(EndRequest request, CommonMemory.Source source, boolean owns, boolean copies) {
        this.request = request;
        this.source = source;
        this.owns = owns;
        this.copies = copies;
    }

    @Override
    public void proxySetup() {
        if (copies) {
            arena = Arena.ofShared();
            own = ConnectionInfo.allocate(arena, layout(), firstStep());
        }
    }

    @Override
    public byte[] setup() {
        if (!owns) {
            return new byte[0];
        }
        common = source.create(layout().totalBytes() + OperationCheck.BYTES);
        shared = ConnectionInfo.at(common.segment(), layout(), firstStep());
        return common.handle();
    }

    @Override
    public boolean proxyConnect(byte[] peer) {
        if (!owns) {
            common = source.open(peer, layout().totalBytes() + OperationCheck.BYTES);
            shared = ConnectionInfo.over(common.segment(), layout(), firstStep());
        }
        check = new OperationCheck(request.name(),
                common.segment().asSlice(layout().totalBytes(), OperationCheck.BYTES), request.sends());
        if (copies) {
            boolean sends = request.sends();
            proxy = new CopyProxy(request.name(), sends ? own : shared, sends ? shared : own, operations,
                    request.settings().listener());
        }
        return true;
    }

    @Override
    public boolean connect(byte[] peer) {
        return true;
    }

    private ConnectionLayout layout() {
        return request.settings().layout();
    }

    private long firstStep() {
        return request.settings().firstStep();
    }

    @Override
    public String way() {
        return copies ? "by copy" : "";
    }

    @Override
    public ConnectionInfo info() {
        return copies ? own : shared;
    }

    @Override
    public void announce(ProxyOp op) {
        RuntimeException disagreement = check.announce(op);
        if (disagreement != null) {
            request.settings().failure().accept(disagreement);
        } else if (copies && op.steps() > 0) {
            operations.add(op);
        }
    }

    @Override
    public List<ProxyConnection> proxyProgress() {
        return copies ? List.of(proxy) : List.of();
    }

    @Override
    public void proxyFree() {
        if (arena != null) {
            arena.close();
            arena = null;
        }
    }

    @Override
    public void free() {
        if (common != null) {
            common.close();
        }
    }
}
