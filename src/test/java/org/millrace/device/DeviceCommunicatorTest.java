package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.kernel.KernelCommunicator;

/** The information that a kernel finds if it knows only the address of a communicator. */
class DeviceCommunicatorTest {

    @SuppressWarnings("restricted") // like a kernel, this test accesses memory by plain addresses
    private static MemorySegment at(long address, long bytes) {
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    @Test
    void aKernelFindsEverythingThroughTheCommunicatorsAddress() {
        int[] nodes = {0, 1, 0, 2, 1, 0};
        try (Arena arena = Arena.ofConfined()) {
            DeviceCommunicator device =
                    new DeviceCommunicator(arena, 4, nodes, ConnectionLayout.DEFAULT, 4096, 3, 1024, 0);
            device.channel(2).ring(3, 1, 4, 0, 5, 2);
            KernelCommunicator view = KernelCommunicator.of(at(device.address(), KernelCommunicator.BYTES));
            assertEquals(4, view.rank());
            assertEquals(6, view.ranks());
            assertEquals(1, view.node());
            assertEquals(3, view.nodes());
            assertEquals(4096, view.transferChunk());
            assertEquals(ConnectionLayout.DEFAULT, view.layout());
            int[] local = at(view.localRanks(), 4L * nodes.length).toArray(ValueLayout.JAVA_INT);
            int[] expected = {0, 0, 1, 0, 1, 2};
            for (int rank = 0; rank < nodes.length; rank++) {
                assertEquals(expected[rank], local[rank], "rank " + rank);
            }
            int[] dense = at(view.denseToUser(), 4L * nodes.length).toArray(ValueLayout.JAVA_INT);
            assertArrayEquals(new int[] {0, 2, 5, 1, 4, 3}, dense);
            KernelChannel channel =
                    KernelChannel.of(at(view.channels() + 2 * KernelChannel.BYTES, KernelChannel.BYTES));
            assertEquals(1, channel.previous());
            assertEquals(0, channel.next());
            assertEquals(2, channel.index());
            int[] order = at(channel.userRanks(), 4L * nodes.length).toArray(ValueLayout.JAVA_INT);
            int[] fromHere = {4, 0, 5, 2, 3, 1};
            for (int ahead = 0; ahead < nodes.length; ahead++) {
                assertEquals(fromHere[ahead], order[ahead], ahead + " ahead");
            }
        }
    }
}
