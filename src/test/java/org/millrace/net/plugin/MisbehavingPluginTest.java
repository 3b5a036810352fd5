package org.millrace.net.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.plugin.TestNet.Count;

/**
 * Tests a difficult plugin against all requirements for a network. The plugin is late, busy and slow, reorders its
 * messages, and accepts only short messages. NCCL allows plugins with all these properties.
 */
@Tag("slow")
class MisbehavingPluginTest extends NetworkContract {

    private static final AtomicLong FAULTS = new AtomicLong();
    private static final AtomicLong GROUPS = new AtomicLong();

    private final TestNet plugin = TestNet.version(12);

    @Override
    protected Network newNetwork() {
        return plugin.with("recvs=3,late=2,busy=3,unordered,drip=9000,limit=30000").open();
    }

    @Override
    protected int framesWithoutAllocation() {
        return 0;
    }

    @AfterEach
    void count() {
        FAULTS.addAndGet(plugin.count(Count.FAULTS));
        GROUPS.addAndGet(plugin.count(Count.GROUPS));
        assertEquals(0, plugin.count(Count.COMPLAINTS));
    }

    @AfterAll
    static void itHappened() {
        Assertions.assertTrue(FAULTS.get() > 1000 && GROUPS.get() > 10, FAULTS + " faults, " + GROUPS + " groups");
    }
}
