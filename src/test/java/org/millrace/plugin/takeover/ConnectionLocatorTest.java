package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.Protocol;
import org.millrace.plugin.host.CallingLibrary;
import org.millrace.plugin.host.CallingLibrary.Vendor;

class ConnectionLocatorTest {

    @Test
    void theLinesOfLL128AreThoseOfTheCallingLibrary() {
        assertEquals(LL128Line.RCCL, layout(new CallingLibrary(Vendor.RCCL, 22803, null)).ll128Line());
        assertEquals(LL128Line.NCCL, layout(new CallingLibrary(Vendor.NCCLX, 22900, null)).ll128Line());
        assertEquals(LL128Line.NCCL, layout(CallingLibrary.UNTOLD).ll128Line());
    }

    private static ConnectionLayout layout(CallingLibrary caller) {
        ConnectionLocator locator = new ConnectionLocator(caller);
        for (Protocol protocol : Protocol.values()) {
            locator.add((1L + protocol.id()) << 20, 64 << 10, false, 0);
        }
        return locator.layout();
    }
}
