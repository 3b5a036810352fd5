package org.millrace.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import org.millrace.MillraceException;
import org.millrace.abi.Protocol;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.driver.CudaDriver;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.plugin.Upcalls.Function;
import org.millrace.plugin.Upcalls.Net;
import org.millrace.plugin.host.NativeEnvironment;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.takeover.KernelPair;

/**
 * Program that a JVM runs to create the startup cache ({@link StartupCache}). The program makes all calls that NCCL
 * makes, between two ranks of this process. With takeover, the ranks use shared memory and TCP. Without takeover, they
 * use only TCP. They also use GIN, with all operations that a kernel can post. The argument of {@code main} is the path
 * of the plugin's library.
 */
final class TrainingRun {

    private static final long STEPS = 10_000;
    private static final int FALLBACK_MESSAGES = 1_000;
    private static final long WINDOW_BYTES = 1 << 20;
    private static final int TABLE_VERSION = 11;
    private static final int TAG = 7;
    private static final long COMMUNICATOR = 1;
    /** Address that stands for no NCCL library, because this program takes NCCL's role. */
    private static final long LIBRARY = 0;

    /** Value that replaces a request after its completion. */
    private static final long DONE = -1;

    private static final Arena ARENA = Arena.global();

    private final PluginTables tables = PluginEntry.tables();
    private final long scratch = number();

    private TrainingRun() {}

    /**
     * Runs the program.
     *
     * @param arguments one argument: the path of the plugin's library
     */
    public static void main(String[] arguments) {
        new TrainingRun().run(Path.of(arguments[0]));
    }

    @SuppressWarnings("restricted") // only Millrace's own library is loaded
    private void run(Path library) {
        RuntimeModules.problemHere();
        loadCuda();
        SymbolLookup shim = SymbolLookup.libraryLookup(library, Arena.global());
        new Upcalls(tables).install(shim.find("millraceInstallUpcalls").orElseThrow());
        NativeEnvironment.set("NCCL_SOCKET_IFNAME", "lo");
        // One thread suffices, because more threads would only compete for cores.
        NativeEnvironment.set(Settings.THREADS.name(), "1");
        // Slots are in host memory, because no kernel runs and the machine may have no GPU.
        NativeEnvironment.set(Settings.DEVICE_SLOTS.name(), "0");
        for (String network : List.of("auto", "socket")) {
            NativeEnvironment.set(Settings.NETWORK.name(), network);
            NativeEnvironment.set(Settings.TAKEOVER.name(), "1");
            new Session().run(this::takeOver);
        }
        NativeEnvironment.set(Settings.TAKEOVER.name(), "0");
        new Session().run(this::exchangeMessages);
        NativeEnvironment.set(Settings.GIN.name(), "host");
        for (String shared : List.of("1", "0")) {
            NativeEnvironment.set(Settings.GIN_SHARED.name(), shared);
            new GinTraining(PluginEntry.tables()).run();
        }
    }

    /**
     * Loads CUDA, if it is installed, so that the cache contains Millrace's classes for CUDA. The run does not use a
     * GPU.
     */
    private static void loadCuda() {
        try {
            CudaRuntime.load();
            CudaDriver.load();
        } catch (MillraceException none) {
            // The machine that creates the cache does not need CUDA.
        }
    }

    private void call(Function function, long... arguments) {
        tables.callAsShim(function, arguments);
    }

    private static long number() {
        return ARENA.allocate(Long.BYTES, Long.BYTES).address();
    }

    /** Moves steps between two emulated kernels, over a connection with takeover. */
    private void takeOver(Link link) {
        MemorySegment from = KernelPair.memory(ARENA);
        MemorySegment to = KernelPair.memory(ARENA);
        long[] sending = register(link.sender(), from);
        long[] receiving = register(link.receiver(), to);
        KernelPair kernels = new KernelPair(from, to, STEPS, true);
        GinTraining.await(() -> !kernels.turn());
        for (int i = 0; i < sending.length; i++) {
            call(Net.DEREG_MR, link.sender(), sending[i]);
            call(Net.DEREG_MR, link.receiver(), receiving[i]);
        }
    }

    private long[] register(long connection, MemorySegment memory) {
        long[] handles = new long[Protocol.values().length];
        for (Protocol protocol : Protocol.values()) {
            long handle = number();
            call(Net.REG_MR, connection, memory.address() + KernelPair.LAYOUT.bufferOffset(protocol),
                    KernelPair.LAYOUT.bufferBytes(protocol), plugin_h.NCCL_PTR_HOST(), handle);
            handles[protocol.id()] = NativeMemory.getLong(handle);
        }
        return handles;
    }

    /** Exchanges messages, as NCCL's own proxy does. */
    private void exchangeMessages(Link link) {
        long memory = ARENA.allocate(2 * WINDOW_BYTES, Long.BYTES).address();
        long handle = number();
        call(Net.REG_MR, link.sender(), memory, WINDOW_BYTES, plugin_h.NCCL_PTR_HOST(), handle);
        long source = NativeMemory.getLong(handle);
        call(Net.REG_MR, link.receiver(), memory + WINDOW_BYTES, WINDOW_BYTES, plugin_h.NCCL_PTR_HOST(), handle);
        long target = NativeMemory.getLong(handle);
        long sending = number();
        long receiving = number();
        MemorySegment place = array(memory + WINDOW_BYTES);
        MemorySegment length = array(0);
        MemorySegment tag = array(TAG);
        MemorySegment registered = array(target);
        for (int i = 0; i < FALLBACK_MESSAGES; i++) {
            long bytes = i % 64 == 0 ? WINDOW_BYTES : i % 8192;
            NativeMemory.putLong(sending, 0);
            NativeMemory.putLong(receiving, 0);
            length.set(ValueLayout.JAVA_LONG, 0, bytes);
            GinTraining.await(() -> {
                if (NativeMemory.getLong(sending) == 0) {
                    call(Net.ISEND, link.sender(), memory, bytes, TAG, source, sending);
                }
                if (NativeMemory.getLong(receiving) == 0) {
                    call(Net.IRECV, link.receiver(), 1, place.address(), length.address(), tag.address(),
                            registered.address(), receiving);
                }
                return isDone(sending) & isDone(receiving);
            });
        }
        call(Net.DEREG_MR, link.sender(), source);
        call(Net.DEREG_MR, link.receiver(), target);
    }

    /** Returns a C array with one 64-bit element. A function that expects a 32-bit element reads the lower half. */
    private static MemorySegment array(long element) {
        return ARENA.allocateFrom(ValueLayout.JAVA_LONG, element);
    }

    /**
     * Returns whether a request is complete. The memory at {@code place} contains the request's handle, or 0 if the
     * message could not begin.
     */
    private boolean isDone(long place) {
        long request = NativeMemory.getLong(place);
        if (request == 0 || request == DONE) {
            return request == DONE;
        }
        call(Net.TEST, request, scratch, 0);
        boolean done = (int) NativeMemory.getLong(scratch) != 0;
        if (done) {
            NativeMemory.putLong(place, DONE);
        }
        return done;
    }

    private record Link(long sender, long receiver) {
    }

    /** A communicator of two ranks, from init to finalize. */
    private final class Session {

        private final long[] contexts = new long[2];

        void run(Consumer<Link> traffic) {
            for (int rank = 0; rank < contexts.length; rank++) {
                long context = number();
                call(Net.INIT, TABLE_VERSION, context, COMMUNICATOR, 0, 0, LIBRARY, 0, 0, 0);
                contexts[rank] = NativeMemory.getLong(context);
            }
            call(Net.DEVICES, number());
            call(Net.GET_PROPERTIES, TABLE_VERSION, 0, ARENA.allocate(1024, Long.BYTES).address(), LIBRARY);
            Link link = connect();
            traffic.accept(link);
            call(Net.CLOSE_SEND, link.sender);
            call(Net.CLOSE_RECV, link.receiver);
            for (long context : contexts) {
                call(Net.FINALIZE, context);
            }
        }

        private Link connect() {
            long handle = ARENA.allocate(128, Long.BYTES).address();
            long listener = number();
            long sender = number();
            long receiver = number();
            long device = number();
            call(Net.LISTEN, contexts[1], 0, handle, listener, LIBRARY);
            GinTraining.await(() -> {
                if (NativeMemory.getLong(sender) == 0) {
                    call(Net.CONNECT, contexts[0], 0, handle, sender, device, 0, LIBRARY);
                }
                if (NativeMemory.getLong(receiver) == 0) {
                    call(Net.ACCEPT, NativeMemory.getLong(listener), receiver, device, 0);
                }
                return NativeMemory.getLong(sender) != 0 && NativeMemory.getLong(receiver) != 0;
            });
            call(Net.CLOSE_LISTEN, NativeMemory.getLong(listener));
            return new Link(NativeMemory.getLong(sender), NativeMemory.getLong(receiver));
        }
    }
}
