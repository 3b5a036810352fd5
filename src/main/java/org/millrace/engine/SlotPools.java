package org.millrace.engine;

import java.lang.foreign.Arena;
import java.util.HashMap;
import java.util.Map;
import org.millrace.abi.ConnectionInfo;
import org.millrace.foreign.PageMemory;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.proxy.SlotPool;
import org.millrace.transport.EndRequest;
import org.millrace.transport.EndSettings.SharedSlotSizes;

/**
 * Slot pools of a rank, one for each channel and direction. The connections of a pool share its slots. A pool's first
 * connection creates the pool, and its last connection frees the pool.
 */
final class SlotPools {

    private record Place(int channel, boolean sends) {
    }

    private final Network network;
    private final Map<Place, Pool> pools = new HashMap<>();

    SlotPools(Network network) {
        this.network = network;
    }

    /** Adds a connection to its pool. */
    synchronized PoolMember join(EndRequest request) {
        Place place = new Place(request.channel(), request.sends());
        Pool pool = pools.computeIfAbsent(place, _ -> new Pool(request.settings().sharedSlots()));
        pool.users++;
        return new PoolMember(place, pool, pool.slots.attach());
    }

    private synchronized void leave(Place place, Pool pool) {
        if (--pool.users == 0) {
            pools.remove(place, pool);
            pool.region.close();
            pool.arena.close();
        }
    }

    private final class Pool {

        private final Arena arena = Arena.ofShared();
        private final MemoryRegion region;
        private final SlotPool slots;
        private int users;

        Pool(SharedSlotSizes sizes) {
            long bytes = (long) SlotPool.slots(sizes.connections()) * sizes.slotBytes();
            region = network.register(ConnectionInfo.unscoped(PageMemory.allocate(bytes, arena)));
            slots = new SlotPool(region, sizes.slotBytes(), sizes.connections());
        }

    }

    /** Membership of one connection in a pool. */
    final class PoolMember {

        private final Place place;
        private final Pool pool;
        private final SlotPool.Share share;
        private boolean left;

        private PoolMember(Place place, Pool pool, SlotPool.Share share) {
            this.place = place;
            this.pool = pool;
            this.share = share;
        }

        SlotPool.Share share() {
            return share;
        }

        SlotPool slots() {
            return pool.slots;
        }

        /** Removes the connection from the pool. Its device and its proxy must have stopped. May be called twice. */
        void leave() {
            if (!left) {
                left = true;
                SlotPools.this.leave(place, pool);
            }
        }
    }
}
