package org.millrace.net.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.plugin.TestNet.Count;

/**
 * All that a network must do, over a plugin that behaves. It finds nothing to complain of, and gets everything back.
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
        return 50_000; // each is some system calls of the plugin's
    }

    @AfterEach
    void everythingIsGivenBack() {
        network.close();
        assertEquals(0, plugin.count(Count.COMPLAINTS));
        assertEquals(registered, plugin.count(Count.REGISTERED));
    }
}
