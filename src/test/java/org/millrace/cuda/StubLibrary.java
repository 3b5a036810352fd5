package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * The test's access to a library that stands in for NCCL or CUDA. The test reads the recorded calls, and sets the
 * results of later calls.
 */
@SuppressWarnings("restricted")
public final class StubLibrary {

    private static final int LOG_BYTES = 1 << 18;

    private final Path path;
    private final SymbolLookup symbols;
    private final Set<String> everCalled = new TreeSet<>();

    private StubLibrary(Path path) {
        this.path = path;
        this.symbols = SymbolLookup.libraryLookup(path, Arena.global());
    }

    public static StubLibrary nccl(String... flags) {
        return new StubLibrary(NativeBuild.stub("nccl.c", "libnccl.so.2", flags));
    }

    public static StubLibrary cudart(String... flags) {
        return new StubLibrary(NativeBuild.stub("cudart.c", "libcudart.so.12", flags));
    }

    public Path path() {
        return path;
    }

    /** Returns the calls since the last query, in order, without calls that only read or set the current device. */
    public List<String> calls() {
        return allCalls().stream()
                .filter(call -> !call.equals("cudaGetDevice") && !call.startsWith("cudaSetDevice "))
                .toList();
    }

    /** Returns all calls since the last query, in order. */
    public List<String> allCalls() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment buffer = arena.allocate(LOG_BYTES);
            call("stub_take", FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG), buffer,
                    (long) LOG_BYTES);
            List<String> calls = buffer.getString(0).lines().map(String::strip).toList();
            calls.forEach(line -> everCalled.add(line.split(" ")[0]));
            return calls;
        }
    }

    /** Returns the names of all functions that {@link #allCalls} has returned so far. */
    public Set<String> everCalled() {
        return everCalled;
    }

    public void recordCalls(boolean on) {
        call("stub_record_calls", FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT), on ? 1 : 0);
    }

    public void fail(String function, int code, int times) {
        try (Arena arena = Arena.ofConfined()) {
            call("stub_fail",
                    FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT),
                    arena.allocateFrom(function), code, times);
        }
    }

    /** Makes calls of a function hang until the communicator is aborted. */
    public void block(String function) {
        try (Arena arena = Arena.ofConfined()) {
            call("stub_block", FunctionDescriptor.ofVoid(ValueLayout.ADDRESS), arena.allocateFrom(function));
        }
    }

    /** Makes all blocked calls return. */
    public void unblock() {
        call("stub_unblock", FunctionDescriptor.ofVoid());
    }

    public void awaitBlocked() {
        call("stub_await_blocked", FunctionDescriptor.ofVoid());
    }

    /** Sets the error that the next {@code times} calls of ncclCommGetAsyncError report. NCCL only. */
    public void async(int code, int times) {
        call("stub_async", FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT), code, times);
    }

    /**
     * Sets the release of NCCL that the stand-in imitates. The stand-in reports this release and reads structs of this
     * release.
     */
    public void release(int version) {
        call("stub_release", FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT), version);
    }

    /** Sets the driver's version; 0 for none. CUDA only. */
    public void driver(int version) {
        call("stub_driver", FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT), version);
    }

    private void call(String name, FunctionDescriptor type, Object... arguments) {
        try {
            MethodHandle handle = Linker.nativeLinker().downcallHandle(symbols.find(name).orElseThrow(), type);
            handle.invokeWithArguments(arguments);
        } catch (Throwable failure) {
            throw new AssertionError(failure);
        }
    }
}
