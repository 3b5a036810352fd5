package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.Device;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Plan;
import org.millrace.ReduceOp;

/** Operations on the emulated device's streams become a plan, as operations on CUDA's streams become a graph. */
class StreamCaptureTest extends EngineFixture {

    private void onRanks(int ranks, EngineGroup.RankBody body) throws InterruptedException {
        EngineGroup.ranks(directory, ranks, EngineGroup.settings(), body);
        assertEquals(List.of(), EngineGroup.threadsAlive(), "threads");
    }

    private static MemorySegment longs(Device device, Arena arena, long first) {
        MemorySegment memory = device.allocate(Long.BYTES, arena);
        memory.set(ValueLayout.JAVA_LONG, 0, first);
        return memory;
    }

    private static long first(MemorySegment memory) {
        return memory.get(ValueLayout.JAVA_LONG, 0);
    }

    /**
     * Captures copies, functions and collectives of one stream, and of other streams that fork from this stream and
     * join this stream later.
     */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void whatIsCapturedRunsWithEachLaunchAndNotBefore(int ranks) throws Exception {
        onRanks(ranks, communicator -> {
            Device device = communicator.device();
            AtomicInteger calls = new AtomicInteger();
            try (Arena arena = Arena.ofShared();
                    DeviceStream stream = device.newStream();
                    DeviceStream side = device.newStream();
                    DeviceStream other = device.newStream();
                    Event forked = device.newEvent();
                    Event joined = device.newEvent()) {
                MemorySegment host = arena.allocate(Long.BYTES, Long.BYTES);
                MemorySegment data = longs(device, arena, 0);
                MemorySegment sum = longs(device, arena, 0);
                MemorySegment most = longs(device, arena, 0);
                stream.beginCapture();
                assertTrue(stream.isCapturing());
                assertThrows(IllegalStateException.class, stream::beginCapture);
                device.copyToDevice(host, data, stream);
                stream.record(forked);
                side.waitFor(forked);
                assertTrue(side.isCapturing());
                communicator.allReduce(data, sum, 1, DataType.INT64, ReduceOp.SUM, stream);
                communicator.allReduce(data, most, 1, DataType.INT64, ReduceOp.MAX, side);
                side.call(calls::incrementAndGet);
                side.record(joined);
                stream.waitFor(joined);
                Plan plan = stream.endCapture();
                assertFalse(stream.isCapturing() || side.isCapturing());
                stream.synchronize(TIMEOUT);
                side.synchronize(TIMEOUT);
                assertEquals(0, calls.get(), "nothing has run");
                for (int launch = 1; launch <= 5; launch++) {
                    host.set(ValueLayout.JAVA_LONG, 0, launch * 10L + communicator.rank());
                    DeviceStream on = launch % 2 == 0 ? other : stream;
                    plan.launch(on);
                    on.synchronize(TIMEOUT);
                    assertEquals(launch, calls.get());
                    assertEquals(ranks * launch * 10L + ranks * (ranks - 1) / 2, first(sum));
                    assertEquals(launch * 10L + ranks - 1, first(most));
                }
                plan.close();
                plan.close();
                assertThrows(IllegalStateException.class, () -> plan.launch(stream));
                communicator.allReduce(data, sum, 1, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
            }
        });
    }

    /**
     * Launches of a plan run in order, although the plan's branches have their own streams: each launch adds to the
     * result of the previous launch.
     */
    @Test
    void launchesOfAPlanFollowEachOther() throws Exception {
        onRanks(2, communicator -> {
            Device device = communicator.device();
            try (Arena arena = Arena.ofShared();
                    DeviceStream stream = device.newStream();
                    DeviceStream side = device.newStream();
                    DeviceStream last = device.newStream();
                    Event event = device.newEvent()) {
                MemorySegment data = longs(device, arena, 1);
                stream.beginCapture();
                stream.record(event);
                side.waitFor(event);
                Millrace.group(() -> communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM, side));
                side.record(event);
                stream.waitFor(event);
                try (Plan plan = stream.endCapture()) {
                    for (int launch = 0; launch < 20; launch++) {
                        plan.launch(launch % 2 == 0 ? stream : last);
                    }
                    stream.synchronize(TIMEOUT);
                    last.synchronize(TIMEOUT);
                    assertEquals(1L << 20, first(data));
                }
            }
        });
    }

    /** Several communicators, streams and transfers in one group. */
    @Test
    void groupsOfSeveralCommunicatorsAreCaptured() throws Exception {
        onRanks(2, communicator -> {
            try (Communicator twin = communicator.split(0, communicator.rank()).orElseThrow();
                    Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream();
                    DeviceStream side = communicator.device().newStream();
                    Event event = communicator.device().newEvent()) {
                int peer = 1 - communicator.rank();
                MemorySegment sent = longs(communicator.device(), arena, 5 + communicator.rank());
                MemorySegment received = longs(communicator.device(), arena, 0);
                MemorySegment sum = longs(communicator.device(), arena, 0);
                stream.beginCapture();
                stream.record(event);
                side.waitFor(event);
                Millrace.group(() -> {
                    communicator.send(sent, 1, DataType.INT64, peer, stream);
                    communicator.receive(received, 1, DataType.INT64, peer, side);
                    twin.allReduce(sent, sum, 1, DataType.INT64, ReduceOp.SUM, side);
                });
                side.record(event);
                stream.waitFor(event);
                try (Plan plan = stream.endCapture()) {
                    for (int launch = 0; launch < 3; launch++) {
                        received.fill((byte) 0);
                        sum.fill((byte) 0);
                        plan.launch(stream);
                        stream.synchronize(TIMEOUT);
                        assertEquals(5 + peer, first(received));
                        assertEquals(11, first(sum));
                    }
                }
            }
        });
    }

    private static String refused(Class<? extends RuntimeException> type, Runnable call) {
        return assertThrows(type, call::run).getMessage();
    }

    @Test
    void whatCannotBeCapturedMakesACaptureInvalid() throws Exception {
        onRanks(1, communicator -> {
            Device device = communicator.device();
            try (DeviceStream stream = device.newStream();
                    DeviceStream side = device.newStream();
                    Event before = device.newEvent();
                    Event event = device.newEvent()) {
                side.record(before);
                List<Runnable> wrong = List.of(stream::query, () -> stream.synchronize(TIMEOUT), stream::completion,
                        () -> stream.waitFor(before));
                for (Runnable each : wrong) {
                    stream.beginCapture();
                    assertTrue(refused(MillraceException.class, each).contains("is invalid now"));
                    assertTrue(refused(MillraceException.class, () -> stream.call(() -> {})).contains("invalidated"));
                    assertTrue(refused(MillraceException.class, stream::endCapture).contains("was invalidated: "));
                    stream.synchronize(TIMEOUT); // the stream works as before the refused capture
                }
                stream.beginCapture();
                stream.record(event);
                assertThrows(MillraceException.class, event::query);
                assertThrows(MillraceException.class, () -> event.synchronize(TIMEOUT));
                side.beginCapture();
                assertTrue(refused(MillraceException.class, () -> side.waitFor(event)).contains("another capture"));
                assertThrows(MillraceException.class, side::endCapture);
                // The failure of the side stream's capture does not affect this stream's capture.
                stream.endCapture().close();
                assertTrue(refused(IllegalStateException.class, () -> side.waitFor(event)).contains("record it again"));
                assertThrows(IllegalStateException.class, stream::endCapture);
                stream.record(event);
                event.synchronize(TIMEOUT);
            }
        });
    }

    @Test
    void workThatIsNotJoinedIsNamed() throws Exception {
        onRanks(1, communicator -> {
            Device device = communicator.device();
            try (DeviceStream stream = device.newStream();
                    DeviceStream side = device.newStream();
                    Event event = device.newEvent()) {
                stream.beginCapture();
                stream.record(event);
                side.waitFor(event);
                assertThrows(IllegalStateException.class, side::endCapture);
                side.call(() -> {});
                String said = refused(MillraceException.class, stream::endCapture);
                assertTrue(said.contains("work of " + side + " was not joined"), said);
                assertFalse(side.isCapturing());
                stream.beginCapture();
                stream.record(event);
                side.waitFor(event);
                side.call(() -> {});
                side.record(event);
                side.call(() -> {}); // waitFor does not wait for this call, which follows the recorded event
                stream.waitFor(event);
                assertThrows(MillraceException.class, stream::endCapture);
            }
        });
    }

    @Test
    void plansAndStreamsThatEndMeanwhile() throws Exception {
        onRanks(1, communicator -> {
            Device device = communicator.device();
            try (Arena arena = Arena.ofShared();
                    DeviceStream stream = device.newStream();
                    Event event = device.newEvent()) {
                MemorySegment data = longs(device, arena, 1);
                DeviceStream closed = device.newStream();
                stream.beginCapture();
                stream.record(event);
                closed.waitFor(event);
                closed.close();
                assertTrue(refused(MillraceException.class, stream::endCapture).contains("was closed"));
                DeviceStream origin = device.newStream();
                origin.beginCapture();
                communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM, origin);
                origin.close();

                stream.beginCapture();
                communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM, stream);
                assertThrows(IllegalStateException.class, () -> communicator.plan(stream, () -> {}));
                Plan plan = stream.endCapture();
                assertThrows(IllegalStateException.class, () -> Millrace.group(() -> plan.launch(stream)));
                stream.beginCapture();
                assertThrows(IllegalStateException.class, () -> plan.launch(stream));
                stream.endCapture().close();
                plan.launch(stream);
                stream.synchronize(TIMEOUT);
                communicator.close();
                assertThrows(MillraceException.class, () -> plan.launch(stream));
                plan.close();
            }
        });
    }
}
