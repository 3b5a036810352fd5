package org.millrace.device;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A block that runs a schedule of chunks over its connections. It begins when all earlier blocks have finished with
 * these connections.
 */
final class PrimitiveBlock implements Block {

    private final ChunkSchedule schedule;
    private final BlockMemory memory;
    private final ChunkShape shape;
    private final List<DeviceEndpoint<ReceivePort>> from;
    private final List<DeviceEndpoint<SendPort>> to;
    private final long[] fromPlaces;
    private final long[] toPlaces;

    /** Primitives of the block; null before the block begins for the first time. */
    private @Nullable Primitives primitives;
    private boolean entered;
    /** Whether all primitives of the schedule have run. */
    private boolean passed;
    private boolean done;

    /**
     * Creates a block, which reserves the next place on all its connections. Blocks are created in the order of their
     * operations, by one thread at a time.
     *
     * @param from connections that the block receives on; their elements are combined in this order
     * @param to   connections that the block sends on
     */
    PrimitiveBlock(ChunkSchedule schedule, BlockMemory memory, ChunkShape shape, List<DeviceEndpoint<ReceivePort>> from,
            List<DeviceEndpoint<SendPort>> to) {
        this.schedule = schedule;
        this.memory = memory;
        this.shape = shape;
        this.from = from;
        this.to = to;
        this.fromPlaces = new long[from.size()];
        this.toPlaces = new long[to.size()];
        reserve();
    }

    private void reserve() {
        for (int i = 0; i < fromPlaces.length; i++) {
            fromPlaces[i] = from.get(i).reserve();
        }
        for (int i = 0; i < toPlaces.length; i++) {
            toPlaces[i] = to.get(i).reserve();
        }
    }

    @Override
    public boolean canRewind() {
        return done;
    }

    @Override
    public void rewind() {
        reserve();
        schedule.rewind();
        entered = false;
        passed = false;
        done = false;
    }

    @Override
    public int progress() {
        int moved = 0;
        if (!entered) {
            if (awaited() != null) {
                return 0;
            }
            enter();
            moved++;
        }
        while (!done) {
            moved += primitives.progress();
            if (!primitives.complete() || !advance()) {
                break;
            }
        }
        return moved;
    }

    private void enter() {
        if (primitives == null) {
            primitives = newPrimitives();
        }
        entered = true;
        primitives.enter();
        advance();
    }

    private Primitives newPrimitives() {
        ReceivePort[] receivePorts = new ReceivePort[from.size()];
        for (int i = 0; i < receivePorts.length; i++) {
            receivePorts[i] = from.get(i).port();
        }
        SendPort[] sendPorts = new SendPort[to.size()];
        for (int i = 0; i < sendPorts.length; i++) {
            sendPorts[i] = to.get(i).port();
        }
        return shape.primitives(receivePorts, sendPorts, memory);
    }

    /**
     * Advances to the next primitive, or to the end of the block. Returns false if the block cannot end yet, because
     * peers or proxies still read this rank's data.
     */
    private boolean advance() {
        if (!passed && schedule.next()) {
            schedule.begin(primitives);
            return true;
        }
        passed = true;
        done = primitives.drained();
        if (done) {
            leave(from);
            leave(to);
        }
        return done;
    }

    private static void leave(List<? extends DeviceEndpoint<?>> endpoints) {
        for (int i = 0; i < endpoints.size(); i++) {
            endpoints.get(i).leave();
        }
    }

    /**
     * Returns the first connection that does not exist yet or that an earlier block uses; null if all connections are
     * available.
     */
    private @Nullable DeviceEndpoint<?> awaited() {
        for (int i = 0; i < fromPlaces.length; i++) {
            if (!from.get(i).admits(fromPlaces[i])) {
                return from.get(i);
            }
        }
        for (int i = 0; i < toPlaces.length; i++) {
            if (!to.get(i).admits(toPlaces[i])) {
                return to.get(i);
            }
        }
        return null;
    }

    @Override
    public boolean done() {
        return done;
    }

    @Override
    public String waitingFor() {
        if (entered) {
            return primitives.waitingFor();
        }
        DeviceEndpoint<?> awaited = awaited();
        return awaited == null ? "no connection"
                : (awaited.port() == null ? "" : "an earlier operation comes first: ") + awaited;
    }
}
