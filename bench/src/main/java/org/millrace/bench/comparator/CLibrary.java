package org.millrace.bench.comparator;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import org.millrace.bench.measure.Loop;

/** The loaded comparators: C loops with which Java's loops are compared. */
public final class CLibrary {

    /** {@code long loop(char *memory, long *arguments, long count)}. */
    private static final FunctionDescriptor LOOP = FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.ADDRESS,
            ValueLayout.ADDRESS, ValueLayout.JAVA_LONG);

    private final SymbolLookup symbols;

    private CLibrary(SymbolLookup symbols) {
        this.symbols = symbols;
    }

    /**
     * Loads the library permanently.
     *
     * @param file library from {@link CompiledLibrary}, null without a compiler
     * @return the library; without a file it contains no loops
     */
    @SuppressWarnings("restricted")
    public static CLibrary load(Path file) {
        return new CLibrary(file == null ? null : SymbolLookup.libraryLookup(file, Arena.global()));
    }

    /**
     * Whether there are comparators.
     *
     * @return false without a C compiler
     */
    public boolean isPresent() {
        return symbols != null;
    }

    /**
     * Returns a loop of C. One call runs the whole batch.
     *
     * @param symbol    its name
     * @param memory    its first argument
     * @param arguments its second argument
     * @return the loop, null without a C library
     */
    public Loop loop(String symbol, MemorySegment memory, MemorySegment arguments) {
        return symbols == null ? null : new Bound(handle(symbol, LOOP), memory, arguments);
    }

    /**
     * Returns a function's address.
     *
     * @param symbol its name
     * @return its address
     */
    public MemorySegment address(String symbol) {
        return symbols.find(symbol).orElseThrow(() -> new IllegalStateException("the C library lacks " + symbol));
    }

    /**
     * Returns a handle that calls a function.
     *
     * @param symbol     its name
     * @param descriptor its parameters
     * @param options    options of the call
     * @return the handle
     */
    @SuppressWarnings("restricted")
    public MethodHandle handle(String symbol, FunctionDescriptor descriptor, Linker.Option... options) {
        return Linker.nativeLinker().downcallHandle(address(symbol), descriptor, options);
    }

    private record Bound(MethodHandle handle, MemorySegment memory, MemorySegment arguments) implements Loop {
        @Override
        public long run(long count) {
            try {
                return (long) handle.invokeExact(memory, arguments, count);
            } catch (Throwable e) {
                throw new IllegalStateException("a loop of C cannot be called", e);
            }
        }
    }
}
