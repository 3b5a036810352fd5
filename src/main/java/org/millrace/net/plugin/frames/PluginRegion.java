package org.millrace.net.plugin.frames;

import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Memory of the network. The plugin registers it with each communicator that uses it, when it is first used there
 * ({@link CommMemory}).
 */
public final class PluginRegion extends NativeRegion {

    private final int kind;
    /** The smallest number that no other open region of the network has: communicators keep handles by it. */
    private final int id;
    private final BitSet ids;
    private final Set<CommMemory> users = ConcurrentHashMap.newKeySet();

    private PluginRegion(OpenResources network, MemorySegment segment, int kind, int id, BitSet ids) {
        super(network, segment, "plugin region " + id);
        this.kind = kind;
        this.id = id;
        this.ids = ids;
    }

    /**
     * Memory of a network, whose open regions have these ids.
     *
     * @param kind one of {@code NCCL_PTR_...}
     */
    public static PluginRegion of(OpenResources network, MemorySegment segment, int kind, BitSet ids) {
        synchronized (ids) {
            PluginRegion region = new PluginRegion(network, segment, kind, ids.nextClearBit(0), ids);
            ids.set(region.id);
            return region;
        }
    }

    int kind() {
        return kind;
    }

    int id() {
        return id;
    }

    Set<CommMemory> users() {
        return users;
    }

    /** No frame is in flight in it: communicators may forget it. */
    @Override
    protected void release() {
        users.forEach(user -> user.forget(this));
        synchronized (ids) {
            ids.clear(id);
        }
    }
}
