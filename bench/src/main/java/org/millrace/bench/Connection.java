package org.millrace.bench;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;

/**
 * One end of a connection, protocol Simple, as a proxy and a device share it. Its memory is of the global arena, as a
 * polled connection's is; it is given back when the benchmark's JVM ends.
 *
 * @param buffer  eight slots
 * @param sendMem where {@code head} is
 * @param recvMem where {@code tail} and {@code connFifo} are
 */
record Connection(MemorySegment buffer, SendMem sendMem, RecvMem recvMem) {

    private static final long PAGE = 4096;

    /** Counters at 0, all slots empty. */
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
