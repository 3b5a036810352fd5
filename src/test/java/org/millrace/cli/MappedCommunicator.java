package org.millrace.cli;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.Device;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;

/**
 * Communicator of {@link MappedProvider}. Operations run immediately, in the caller's thread. Supports only float and
 * int32, and only sums.
 */
final class MappedCommunicator implements Communicator, Device, DeviceStream {

    private final MemorySegment memory;
    private final MappedBarrier barrier;
    private final int rank;
    private final int size;
    private final String fault;
    private int operations;

    MappedCommunicator(MemorySegment memory, MappedBarrier barrier, int rank, int size, String fault) {
        this.memory = memory;
        this.barrier = barrier;
        this.rank = rank;
        this.size = size;
        this.fault = fault;
    }

    @Override
    public void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            DeviceStream stream) {
        misbehave();
        long bytes = count * type.bytes();
        MemorySegment.copy(send, 0, memory, place(rank), bytes);
        barrier.await();
        for (long at = 0; at < bytes; at += type.bytes()) {
            if (type == DataType.FLOAT32) {
                float sum = 0;
                for (int other = 0; other < size; other++) {
                    sum += memory.get(ValueLayout.JAVA_FLOAT, place(other) + at);
                }
                receive.set(ValueLayout.JAVA_FLOAT, at, sum);
            } else {
                int sum = 0;
                for (int other = 0; other < size; other++) {
                    sum += memory.get(ValueLayout.JAVA_INT, place(other) + at);
                }
                receive.set(ValueLayout.JAVA_INT, at, sum);
            }
        }
        if (fault.equals("wrong") && bytes > 0) {
            receive.set(ValueLayout.JAVA_BYTE, bytes - 2,
                    (byte) (receive.get(ValueLayout.JAVA_BYTE, bytes - 2) ^ 0x40));
        }
        barrier.await();
    }

    private void misbehave() {
        if (++operations != 3) {
            return;
        }
        switch (fault) {
            case "throw" -> throw new MillraceException("the planted failure");
            case "die" -> Runtime.getRuntime().halt(7);
            case "hang" -> {
                while (true) {
                    LockSupport.park(this);
                    // park() returns at once in an interrupted thread. If the interrupt were not cleared here, the loop
                    // would spin and take a core from all later tests.
                    Thread.interrupted();
                }
            }
            default -> {}
        }
    }

    private static long place(int rank) {
        return MappedBarrier.BYTES + rank * MappedProvider.LIMIT;
    }

    @Override
    public int rank() {
        return rank;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public Device device() {
        return this;
    }

    @Override
    public void abort(Throwable reason) {
        barrier.fail();
    }

    @Override
    public void close() {}

    @Override
    public String name() {
        return "mapped memory";
    }

    @Override
    public MemorySegment allocate(long bytes, Arena arena) {
        return arena.allocate(bytes, 64);
    }

    @Override
    public Event newEvent() {
        throw new UnsupportedOperationException();
    }

    @Override
    public void record(Event event) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void waitFor(Event event) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void call(Runnable function) {
        function.run();
    }

    @Override
    public DeviceStream newStream() {
        return this;
    }

    @Override
    public void copyToDevice(MemorySegment host, MemorySegment device, DeviceStream stream) {
        device.copyFrom(host);
    }

    @Override
    public void copyToHost(MemorySegment device, MemorySegment host, DeviceStream stream) {
        host.copyFrom(device);
    }

    @Override
    public boolean query() {
        return true;
    }

    @Override
    public void synchronize(Duration deadline) {}
}
