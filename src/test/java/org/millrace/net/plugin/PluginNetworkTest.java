package org.millrace.net.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.plugin.TestNet.Count;

/**
 * All requirements for a network, over a plugin without faults. The plugin reports no complaint and no open resource.
 */
@Tag("optimized")
@Tag("slow")
class PluginNetworkTest extends NetworkContract {

    private final TestNet plugin = TestNet.version(12);
    private long open;
    private long registered;

    @BeforeEach
    void note() {
        open = plugin.count(Count.OPEN);
        registered = plugin.count(Count.REGISTERED);
    }

    @Override
    protected Network newNetwork() {
        return plugin.with("recvs=4").open();
    }

    @Override
    protected int framesWithoutAllocation() {
        return 50_000; // The number is small, because the plugin makes several system calls for each frame.
    }

    @AfterEach
    void everythingIsGivenBack() {
        network.close();
        assertEquals(0, plugin.count(Count.COMPLAINTS));
        assertEquals(registered, plugin.count(Count.REGISTERED));
    }
}
