package com.example.millrace.unix;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Queue;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.proxy.spi.Steps;
import org.millrace.transport.EndRequest;

/** Writes the device's posted data to the socket, and returns its slots to the device. */
final class SendProgress extends Progress {

    private final ByteBuffer[] slice;
    private boolean begun;

    SendProgress(EndRequest request, ConnectionInfo memory, SocketChannel socket, Queue<ProxyOp> operations) {
        super(request, memory, socket, operations);
        slice = new ByteBuffer[] {size, data};
    }

    @Override
    boolean moveSlice(long first, long end) throws IOException {
        RecvMem posted = memory.recvMem();
        if (!begun) {
            // tailAcquire pairs with the device's release, which publishes the data and its size
            if (!Steps.reached(posted.tailAcquire(), end)) {
                return false;
            }
            long bytes = posted.sizePlain(ConnectionLayout.slot(first));
            aim(first, bytes);
            size.clear().putLong(bytes).flip();
            begun = true;
        }
        socket.write(slice);
        if (size.hasRemaining() || data.hasRemaining()) {
            return false;
        }
        begun = false;
        posted.sizePlain(ConnectionLayout.slot(first), RecvMem.EMPTY);
        memory.sendMem().headRelease(end); // release: the device may write the slots again
        return true;
    }
}
