package org.millrace.net.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.net.ConnectionException;
import org.millrace.net.plugin.NetTable.NetFunction;
import org.millrace.net.plugin.PluginLibrary.Session;

/**
 * A communicator that the plugin is creating, on the accepting or the connecting side. The plugin's calls return
 * without waiting. The calls are repeated until the communicator exists. The handle must keep its address until then,
 * because plugins store the state of the connection attempt in the handle. Guarded by the owner of this object.
 */
final class CommInMaking implements AutoCloseable {

    private final Session session;
    private final CallWatch watch;
    private final NetFunction making;
    private final int device;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment handle = arena.allocate(PluginHello.Answer.HANDLE_BYTES, 64);
    private final MemorySegment results = arena.allocate(2 * Long.BYTES, 64);
    /** Address of the plugin's listener, on the accepting side; 0 on the connecting side. */
    private long listener;
    private long communicator;

    private CommInMaking(Session session, CallWatch watch, NetFunction making, int device) {
        this.session = session;
        this.watch = watch;
        this.making = making;
        this.device = device;
    }

    /** @throws ConnectionException if the plugin cannot listen */
    static CommInMaking listen(Session session, CallWatch watch, int device) {
        CommInMaking comm = new CommInMaking(session, watch, NetFunction.ACCEPT, device);
        try {
            comm.check(NetFunction.LISTEN, session.table()
                    .listen(watch, session.context(), device, comm.handle.address(), comm.results.address()));
            comm.listener = comm.results.get(ValueLayout.JAVA_LONG, 0);
            return comm;
        } catch (ConnectionException e) {
            comm.close();
            throw e;
        }
    }

    static CommInMaking connect(Session session, CallWatch watch, int device, byte[] peer) {
        CommInMaking comm = new CommInMaking(session, watch, NetFunction.CONNECT, device);
        comm.handle.copyFrom(MemorySegment.ofArray(peer));
        return comm;
    }

    private void check(NetFunction function, int result) {
        if (result != NetTable.SUCCESS) {
            throw new ConnectionException(session.failed(function, result));
        }
    }

    /** Returns the handle of the plugin's listener. The peer connects to this handle. */
    byte[] handle() {
        return handle.toArray(ValueLayout.JAVA_BYTE);
    }

    /**
     * Calls the plugin once more, without waiting.
     *
     * @return whether the communicator exists
     * @throws ConnectionException if the plugin cannot create the communicator
     */
    boolean advance() {
        if (communicator != 0) {
            return true;
        }
        NetTable table = session.table();
        results.fill((byte) 0);
        // The plugin stores a null pointer at this address, because this side supports no network device.
        long kernels = results.address() + Long.BYTES;
        check(making,
                making == NetFunction.ACCEPT ? table.accept(watch, listener, results.address(), kernels)
                        : table.connect(watch, session.context(), device, session.configuration(), handle.address(),
                                results.address(), kernels));
        communicator = results.get(ValueLayout.JAVA_LONG, 0);
        return communicator != 0;
    }

    /** Returns the communicator, which the caller owns from now on. */
    long take() {
        long taken = communicator;
        communicator = 0;
        return taken;
    }

    /** Closes the plugin's listener, and the communicator unless {@link #take} has returned it. */
    @Override
    public void close() {
        if (!arena.scope().isAlive()) {
            return;
        }
        if (listener != 0) {
            session.table().close(watch, NetFunction.CLOSE_LISTEN, listener);
        }
        if (communicator != 0) {
            session.table()
                    .close(watch, making == NetFunction.ACCEPT ? NetFunction.CLOSE_RECV : NetFunction.CLOSE_SEND,
                            communicator);
        }
        arena.close();
    }
}
