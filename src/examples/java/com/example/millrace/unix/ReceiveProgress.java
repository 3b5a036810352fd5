package com.example.millrace.unix;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Queue;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.proxy.spi.Steps;
import org.millrace.transport.EndRequest;

/** Reads data from the socket into free slots, and reports it to the device. */
final class ReceiveProgress extends Progress {

    private boolean begun;

    ReceiveProgress(EndRequest request, ConnectionInfo memory, SocketChannel socket, Queue<ProxyOp> operations) {
        super(request, memory, socket, operations);
    }

    @Override
    boolean moveSlice(long first, long end) throws IOException {
        if (!begun) {
            // headAcquire pairs with the device's release after it has read the slots
            if (!Steps.reached(memory.sendMem().headAcquire() + ConnectionLayout.SLOTS, end) || !filled(size)) {
                return false;
            }
            aim(first, size.flip().getLong());
            begun = true;
        }
        if (!filled(data)) {
            return false;
        }
        begun = false;
        size.clear();
        memory.recvMem().tailRelease(end); // release: publishes the data to the device
        return true;
    }

    private boolean filled(ByteBuffer buffer) throws IOException {
        if (buffer.hasRemaining() && socket.read(buffer) < 0) {
            throw new EOFException("the peer has closed its end");
        }
        return !buffer.hasRemaining();
    }
}
