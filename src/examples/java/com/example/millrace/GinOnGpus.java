package com.example.millrace;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Arrays;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaEvent;
import org.millrace.cuda.CudaModule;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.CurrentDevice;
import org.millrace.cuda.DeviceMemory;
import org.millrace.cuda.KernelParameters;
import org.millrace.cuda.LaunchShape;
import org.millrace.cuda.PinnedMemory;
import org.millrace.nccl.NcclCommunicator;
import org.millrace.nccl.NcclDeviceCommunicator;
import org.millrace.nccl.NcclLibrary;
import org.millrace.nccl.NcclWindow;
import org.millrace.nccl.UniqueId;

/**
 * One rank of a Java program whose kernels put through NCCL's device functions. {@code NCCL_NET_PLUGIN} names
 * Millrace's library, which finds this JVM, so that this JVM serves the queues of the kernels. {@code
 * bench/gpu/gin.sh} compiles the kernels ({@code bench/gpu/gin_java.cu}) and starts this program for each rank.
 *
 * <p>
 * Arguments: RANK RANKS ID_FILE CUBIN MAX_BYTES ROUNDS. The program measures puts with a signal between ranks 0 and 1,
 * in turn, and then puts of every rank to each rank. It compares every received byte and 256 bytes behind them. At the
 * end every rank prints "wrong COUNT".
 */
public final class GinOnGpus {

    private static final Duration DEADLINE = Duration.ofSeconds(60);
    private static final long[] SIZES = {0, 8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
    /** Maximum number of bytes of a line. It limits the number of rounds of large sizes. */
    private static final long VOLUME = 1L << 28;
    /** Number of bytes behind the received data that must stay unchanged. */
    private static final int MARGIN = 256;
    private static final byte UNTOUCHED = 0x5a;
    private static final long PAGE = 4096;
    /**
     * Number of signals of {@code gin_java.cu}: one for the puts in turn, one for barriers, one for all ranks' puts.
     */
    private static final int SIGNALS = 3;

    private final Arena arena;
    private final CudaDevice gpu;
    private final CudaStream stream;
    private final CudaModule module;
    private final NcclLibrary nccl;
    private final NcclCommunicator communicator;
    private final NcclDeviceCommunicator device;
    private final int rank;
    private final int ranks;
    /** Place where a kernel reports a signal that it has awaited in vain. */
    private final PinnedMemory outcome;
    private long turns;
    private long exchanges;
    private long meetings;

    public static void main(String[] args) throws Exception {
        int rank = Integer.parseInt(args[0]);
        int ranks = Integer.parseInt(args[1]);
        CudaRuntime cuda = CudaRuntime.load(System.getenv("MILLRACE_CUDART_LIBRARY"));
        NcclLibrary nccl = NcclLibrary.load(System.getenv("MILLRACE_NCCL_LIBRARY"));
        CudaDevice gpu = cuda.device(rank % cuda.deviceCount());
        try (CurrentDevice _ = gpu.makeCurrent()) {
            CudaModule module = CudaModule.load(cuda, Files.readAllBytes(Path.of(args[3])));
            NcclCommunicator communicator = nccl.join(gpu, id(nccl, rank, Path.of(args[2])), ranks, rank);
            new GinOnGpus(Arena.ofShared(), gpu, module, nccl, communicator, rank, ranks).run(Long.parseLong(args[4]),
                    Integer.parseInt(args[5]));
        } catch (Throwable failure) {
            failure.printStackTrace();
            // Nothing is closed: that would wait for kernels that may never end.
            Runtime.getRuntime().halt(1);
        }
    }

    /** Returns the communicator's id. Rank 0 creates the id, and the other ranks read it from the file. */
    private static UniqueId id(NcclLibrary nccl, int rank, Path file) throws IOException, InterruptedException {
        if (rank == 0) {
            UniqueId id = nccl.newUniqueId();
            Path part = Files.write(Path.of(file + ".part"), id.toBytes());
            Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
            return id;
        }
        while (!Files.exists(file)) {
            Thread.sleep(1);
        }
        return UniqueId.of(Files.readAllBytes(file));
    }

    private GinOnGpus(Arena arena, CudaDevice gpu, CudaModule module, NcclLibrary nccl, NcclCommunicator communicator,
            int rank, int ranks) {
        this.arena = arena;
        this.gpu = gpu;
        this.module = module;
        this.nccl = nccl;
        this.communicator = communicator;
        this.rank = rank;
        this.ranks = ranks;
        stream = gpu.newStream();
        outcome = PinnedMemory.allocate(gpu, 4 * Long.BYTES, arena, PinnedMemory.Flag.MAPPED);
        module.kernel("ginFacts")
                .launch(LaunchShape.of(1, 1), KernelParameters.allocate(arena, ADDRESS).pointer(0, outcome.device()),
                        stream);
        stream.synchronize(DEADLINE);
        int compiledWith = (int) word(0);
        device = communicator.newDeviceCommunicator(new NcclDeviceCommunicator.Requirements(0, SIGNALS, 0, 4),
                compiledWith);
        device.requireBytes(word(1));
        outcome.host().fill((byte) 0);
        if (device.contexts() == 0) {
            throw new IllegalStateException("NCCL made no GIN contexts; NCCL_DEBUG=INFO shows the plugin that it uses");
        }
    }

    private void run(long maxBytes, int rounds) {
        long bytes = (maxBytes * ranks + MARGIN + PAGE - 1) / PAGE * PAGE;
        long wrong = 0;
        try (DeviceMemory source = nccl.allocate(gpu, bytes);
                DeviceMemory target = nccl.allocate(gpu, bytes);
                NcclWindow from = communicator.registerWindow(source.segment(), true);
                NcclWindow to = communicator.registerWindow(target.segment(), true)) {
            MemorySegment host = PinnedMemory.allocate(gpu, bytes, arena).host();
            for (boolean all : new boolean[] {false, true}) {
                for (long size : SIZES) {
                    if (size <= maxBytes && (size > 0 || !all)) {
                        wrong += line(all, size, rounds, source, target, from, to, host);
                    }
                }
            }
            meet(); // a peer's kernel may still put to this rank's windows
            await();
        }
        device.close();
        communicator.close();
        // NCCL logs to the same place, and may have written a part of a line.
        System.out.println("\nrank " + rank + " wrong " + wrong);
    }

    /** Measures one size, and returns the number of wrong bytes. */
    private long line(boolean all, long size, int most, DeviceMemory source, DeviceMemory target, NcclWindow from,
            NcclWindow to, MemorySegment host) {
        int parts = all ? ranks : 1;
        int many = Math.clamp(VOLUME / Math.max(1, size * parts), 1, most);
        for (long at = 0; at < size * parts; at++) {
            host.set(JAVA_BYTE, at, content(rank, all ? (int) (at / size) : 1 - rank, size, at % size));
        }
        if (size > 0) {
            stream.copy(source.slice(0, size * parts), host.asSlice(0, size * parts));
        }
        stream.fill(target.segment(), UNTOUCHED);
        meet();
        put(all, size, Math.max(1, many / 5), from, to); // compiles the code that serves the queues
        meet();
        try (CudaEvent begin = CudaEvent.timing(gpu); CudaEvent end = CudaEvent.timing(gpu)) {
            begin.record(stream);
            put(all, size, many, from, to);
            end.record(stream);
            await();
            if (rank == 0) {
                double micros = end.millisSince(begin) * 1e3 / many / (all ? 1 : 2);
                System.out.printf("%s of Java, %9d B: %10.2f us, %7.2f GB/s a rank%n",
                        all ? "all-to-all" : "put + signal, one way,", size, micros, size * parts / micros / 1e3);
            }
        }
        long used = all || rank < 2 ? size * parts : 0;
        stream.copy(host.asSlice(0, used + MARGIN), target.slice(0, used + MARGIN));
        stream.synchronize(DEADLINE);
        long wrong = 0;
        for (long at = 0; at < used + MARGIN; at++) {
            byte expected = at >= used ? UNTOUCHED : content(all ? (int) (at / size) : 1 - rank, rank, size, at % size);
            wrong += host.get(JAVA_BYTE, at) == expected ? 0 : 1;
        }
        return wrong;
    }

    private static byte content(int from, int to, long bytes, long at) {
        return (byte) (at * 31 + at / 251 + from * 7L + to * 13L + bytes % 127);
    }

    /** Enqueues rounds of puts. */
    private void put(boolean all, long bytes, int count, NcclWindow from, NcclWindow to) {
        if (all) {
            launch("ginAllToAll", 32, device.contexts(), to.address(), from.address(), bytes, exchanges, meetings,
                    count);
            meetings += count;
            exchanges += count;
        } else if (rank < 2) {
            launch("ginPingPong", 1, to.address(), from.address(), bytes, turns, count);
            turns += count;
        }
    }

    /** Enqueues a barrier of all ranks. */
    private void meet() {
        launch("ginBarrier", 32, meetings++);
    }

    /** Launches a kernel. All kernels have the device communicator, numbers, the time limit and the outcome. */
    private void launch(String kernel, int threads, long... values) {
        MemoryLayout[] types = new MemoryLayout[values.length + 3];
        Arrays.fill(types, JAVA_LONG);
        types[0] = device.type();
        types[values.length + 2] = ADDRESS;
        KernelParameters arguments = KernelParameters.allocate(arena, types).struct(0, device.bytes());
        for (int i = 0; i < values.length; i++) {
            arguments.set(i + 1, values[i]);
        }
        arguments.set(values.length + 1, DEADLINE.toNanos()).pointer(values.length + 2, outcome.device());
        module.kernel(kernel).launch(LaunchShape.of(1, threads), arguments, stream);
    }

    /** Waits for the kernels, each of which gives up after the time limit. */
    private void await() {
        stream.synchronize(DEADLINE.multipliedBy(3));
        if (word(0) != 0) {
            throw new IllegalStateException("rank " + rank + ": signal " + (word(0) - 1) + " of context " + word(3)
                    + " is " + word(2) + " and not yet " + word(1));
        }
    }

    private long word(int index) {
        return outcome.host().get(JAVA_LONG, (long) index * Long.BYTES);
    }
}
