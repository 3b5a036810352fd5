package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.millrace.abi.KernelChannel;
import org.millrace.foreign.PageMemoryTest;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;
import org.millrace.transport.EndRequest;
import org.millrace.transport.EndSettings;

/** Slots that the connections of a channel share. */
class SlotPoolsTest {

    /**
     * Size of a slot in bytes. The pool is so large that no later allocation of the process uses the middle of the
     * pool's freed addresses.
     */
    private static final int SLOT_BYTES = 64 << 20;

    @Test
    void theLastConnectionFreesThePool() throws IOException {
        EndSettings settings = new EndSettings(null, 0, null, null, new EndSettings.SharedSlotSizes(SLOT_BYTES, 2), 0,
                null, null, null, 0);
        EndRequest request = new EndRequest(null, null, 0, KernelChannel.POINT_TO_POINT, true, settings, null);
        try (SocketNetwork network = new SocketNetwork(SocketOptions.defaults())) {
            SlotPools pools = new SlotPools(network);
            SlotPools.PoolMember first = pools.join(request);
            SlotPools.PoolMember second = pools.join(request);
            MemorySegment slots = first.slots().slots().memory();
            long middle = slots.address() + slots.byteSize() / 2;
            first.leave();
            assertTrue(PageMemoryTest.isMapped(middle), "another connection has slots");
            second.leave();
            assertFalse(PageMemoryTest.isMapped(middle));
        }
    }
}
