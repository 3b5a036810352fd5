package com.example.millrace.unix;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Queue;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.ConnectionException;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.proxy.spi.Steps;
import org.millrace.transport.EndRequest;

/**
 * Step 4, progress: processes the steps of the announced operations, one slice after another. On the wire, a slice
 * consists of its size, 8 bytes, and its data.
 */
abstract class Progress implements ProxyConnection {

    final ConnectionInfo memory;
    final SocketChannel socket;
    final ByteBuffer size = ByteBuffer.allocateDirect(Long.BYTES);
    final ByteBuffer data;
    private final EndRequest request;
    private final Queue<ProxyOp> operations;
    private final long slotBytes;
    private ProxyOp op;
    private long step;
    private long last;

    Progress(EndRequest request, ConnectionInfo memory, SocketChannel socket, Queue<ProxyOp> operations) {
        this.request = request;
        this.memory = memory;
        this.socket = socket;
        this.operations = operations;
        this.step = memory.firstStep();
        this.data = memory.buffer(Protocol.SIMPLE).asByteBuffer();
        this.slotBytes = memory.layout().slotBytes(Protocol.SIMPLE);
    }

    @Override
    public int progress() {
        if (op == null) {
            op = operations.poll();
            if (op == null) {
                return 0;
            }
            step = Steps.roundUp(step, op.chunkSteps()); // the device rounds its step in the same way
            last = step + op.steps();
        }
        try {
            if (!moveSlice(step, step + op.sliceSteps())) {
                return 0;
            }
        } catch (IOException e) {
            throw new ConnectionException(name() + ": " + e.getMessage(), e);
        }
        step += op.sliceSteps();
        if (step == last) {
            op = null;
        }
        return 1;
    }

    /** Moves as much of the slice as is possible now. Returns true when the whole slice has moved. */
    abstract boolean moveSlice(long first, long end) throws IOException;

    /** Prepares the move of a slice: selects the memory of its data. */
    final void aim(long first, long bytes) throws IOException {
        if (bytes < 0 || bytes > 2 * slotBytes) {
            throw new IOException("a slice of " + bytes + " bytes");
        }
        int offset = Math.toIntExact(ConnectionLayout.slot(first) * slotBytes);
        data.limit(offset + (int) bytes).position(offset);
    }

    @Override
    public boolean drained() {
        return op == null && operations.isEmpty();
    }

    @Override
    public boolean owesData() {
        return !drained();
    }

    @Override
    public void stopped(Throwable failure) {
        try {
            SocketEnd.close(socket);
        } finally {
            request.settings().listener().stopped(this, failure);
        }
    }

    @Override
    public ConnectionName name() {
        return request.name();
    }

    @Override
    public String lastSeen() {
        return "head " + memory.sendMem().headAcquire() + ", tail " + memory.recvMem().tailAcquire();
    }
}
