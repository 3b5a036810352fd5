package org.millrace.bench;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;

/**
 * One end of a connection, protocol Simple, as a proxy and a device share it. Its memory belongs to the global arena,
 * as a polled connection's memory does. It is freed when the benchmark's JVM exits.
 *
 * @param buffer  eight slots
 * @param sendMem memory with {@code head}
 * @param recvMem memory with {@code tail} and {@code connFifo}
 */
record Connection(MemorySegment buffer, SendMem sendMem, RecvMem recvMem) {

    private static final long PAGE = 4096;

    /** Allocates a connection with all counters at 0 and all slots empty. */
    static Connection allocate(long slotBytes) {
        MemorySegment control = Arena.global().allocate(SendMem.BYTES + RecvMem.BYTES, PAGE);
        Connection connection = new Connection(Arena.global().allocate(slotBytes * ConnectionLayout.SLOTS, PAGE),
                SendMem.of(control.asSlice(0, SendMem.BYTES)),
                RecvMem.of(control.asSlice(SendMem.BYTES, RecvMem.BYTES)));
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            connection.recvMem.sizePlain(slot, RecvMem.EMPTY);
        }
        return connection;
    }
}
