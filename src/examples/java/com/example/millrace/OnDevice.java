package com.example.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.millrace.Communicator;
import org.millrace.CommunicatorProvider;
import org.millrace.DataType;
import org.millrace.Device;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.Millrace;
import org.millrace.ReduceOp;

/**
 * A program for GPUs. It copies data to the device on one stream and reduces it on another, which waits for the copy's
 * event. The host waits only for the result. The program lists the providers and uses {@code MILLRACE_DEVICE}: GPUs
 * through libnccl if they are usable, otherwise the emulated device. Use one rank for each GPU; with one GPU the
 * argument is 1.
 */
public final class OnDevice {

    private static final int COUNT = 1 << 16;

    public static void main(String[] args) throws Exception {
        List<String> broken = new ArrayList<>();
        for (CommunicatorProvider provider : Millrace.providers(broken)) {
            System.out.println(provider.device() + ": "
                    + provider.whyUnusable(Map.of()).map(why -> "not usable").orElse("usable"));
        }
        Ranks.run(args.length == 0 ? 2 : Integer.parseInt(args[0]), OnDevice::rank);
    }

    private static void rank(String rendezvous, int rank, int size) {
        try (Communicator communicator = Millrace.join(rendezvous, rank, size);
                DeviceStream copies = communicator.device().newStream();
                DeviceStream reductions = communicator.device().newStream();
                Arena arena = Arena.ofShared()) {
            Device device = communicator.device();
            MemorySegment host = arena.allocate(ValueLayout.JAVA_DOUBLE, COUNT);
            for (int i = 0; i < COUNT; i++) {
                host.setAtIndex(ValueLayout.JAVA_DOUBLE, i, rank * COUNT + i);
            }
            MemorySegment data = device.allocate(host.byteSize(), arena);
            device.copyToDevice(host, data, copies);
            Event copied = device.newEvent();
            copies.record(copied);
            reductions.waitFor(copied);
            communicator.allReduce(data, data, COUNT, DataType.FLOAT64, ReduceOp.MAX, reductions);
            device.copyToHost(data, host, reductions);
            reductions.synchronize(Duration.ofSeconds(30));
            System.out.println("rank " + rank + " on " + device.name() + ": the largest is "
                    + host.getAtIndex(ValueLayout.JAVA_DOUBLE, COUNT - 1));
        }
    }
}
