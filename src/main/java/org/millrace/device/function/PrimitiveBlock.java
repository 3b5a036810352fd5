package org.millrace.device.function;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.device.channel.DeviceEndpoint;
import org.millrace.device.channel.ReceivePort;
import org.millrace.device.channel.SendPort;
import org.millrace.device.primitives.BlockMemory;
import org.millrace.device.primitives.ChunkShape;
import org.millrace.device.primitives.Primitives;

/** A block that runs a schedule of chunks over its connections, when its turn has come on all of them. */
public final class PrimitiveBlock implements Block {

    private final ChunkSchedule schedule;
    private final BlockMemory memory;
    private final ChunkShape shape;
    private final List<DeviceEndpoint<ReceivePort>> from;
    private final List<DeviceEndpoint<SendPort>> to;
    private final long[] fromPlaces;
    private final long[] toPlaces;

    private @Nullable Primitives primitives;
    /** Whether the schedule is at its end. */
    private boolean passed;
    private boolean done;

    /**
     * Takes its place on all connections: blocks are made in the order in which operations are issued, by one thread at
     * a time.
     *
     * @param from the connections it receives on; the order says how elements are combined
     */
    PrimitiveBlock(ChunkSchedule schedule, BlockMemory memory, ChunkShape shape, List<DeviceEndpoint<ReceivePort>> from,
            List<DeviceEndpoint<SendPort>> to) {
        this.schedule = schedule;
        this.memory = memory;
        this.shape = shape;
        this.from = from;
        this.to = to;
        this.fromPlaces = reserve(from);
        this.toPlaces = reserve(to);
    }

    private static long[] reserve(List<? extends DeviceEndpoint<?>> endpoints) {
        long[] places = new long[endpoints.size()];
        for (int i = 0; i < places.length; i++) {
            places[i] = endpoints.get(i).reserve();
        }
        return places;
    }

    @Override
    public void begin() {
        // enters when it is its turn
    }

    @Override
    public int progress() {
        int moved = 0;
        if (primitives == null) {
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
        ReceivePort[] receivePorts = new ReceivePort[from.size()];
        for (int i = 0; i < receivePorts.length; i++) {
            receivePorts[i] = from.get(i).port();
        }
        SendPort[] sendPorts = new SendPort[to.size()];
        for (int i = 0; i < sendPorts.length; i++) {
            sendPorts[i] = to.get(i).port();
        }
        primitives = shape.primitives(receivePorts, sendPorts, memory);
        primitives.enter();
        advance();
    }

    /** Goes on to the next primitive, or to the end; false if the end has to wait. */
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

    /** The first connection that is not there or is used by a block before this one; null if there is none. */
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
        if (primitives != null) {
            return primitives.waitingFor();
        }
        DeviceEndpoint<?> awaited = awaited();
        return awaited == null ? "nobody" : "an operation before it: " + awaited;
    }
}
