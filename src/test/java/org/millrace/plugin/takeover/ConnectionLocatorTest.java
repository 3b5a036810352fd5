package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.Protocol;
import org.millrace.abi.SendMem;
import org.millrace.plugin.host.CallingLibrary;
import org.millrace.plugin.host.CallingLibrary.Vendor;

class ConnectionLocatorTest {

    @Test
    void theLinesOfLL128AreThoseOfTheCallingLibrary() {
        assertEquals(LL128Line.RCCL, layout(new CallingLibrary(Vendor.RCCL, 22803, null)).ll128Line());
        assertEquals(LL128Line.NCCL, layout(new CallingLibrary(Vendor.NCCLX, 22900, null)).ll128Line());
        assertEquals(LL128Line.NCCL, layout(CallingLibrary.UNTOLD).ll128Line());
    }

    @ParameterizedTest
    @CsvSource({"NCCL, 21903, true", "NCCL, 23007, true", "NCCL, 21805, false", "NCCL, 23102, false", "NCCL, 0, false",
            "NCCLX, 22900, false", "RCCL, 22803, false"})
    void ranksAndChannelAreReadOnlyInInspectedReleases(Vendor vendor, int version, boolean read) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment resources = arena.allocate(256, Long.BYTES);
            ConnectionLocator locator = new ConnectionLocator(new CallingLibrary(vendor, version, null));
            long handles = 200;
            for (Protocol protocol : Protocol.values()) {
                long buffer = (1L + protocol.id()) << 20;
                resources.set(ValueLayout.JAVA_LONG, handles - 40 + protocol.id() * Long.BYTES, buffer);
                locator.add(buffer, 64 << 10, false, resources.address() + handles);
            }
            resources.set(ValueLayout.JAVA_LONG, handles - 136 + 8, SendMem.BYTES);
            resources.set(ValueLayout.JAVA_INT, handles - 120, 3);
            resources.set(ValueLayout.JAVA_INT, handles - 112, 5);
            resources.set(ValueLayout.JAVA_INT, handles - 52, 2);
            assertEquals(read ? new ConnectionLocator.Ends(3, 5, 2) : null, locator.ends(true));
        }
    }

    private static ConnectionLayout layout(CallingLibrary caller) {
        ConnectionLocator locator = new ConnectionLocator(caller);
        for (Protocol protocol : Protocol.values()) {
            locator.add((1L + protocol.id()) << 20, 64 << 10, false, 0);
        }
        return locator.layout();
    }
}
