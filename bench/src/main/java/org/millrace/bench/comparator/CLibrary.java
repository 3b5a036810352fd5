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

    /** Property with the location of the compiled library, for every JVM of a run. */
    public static final String PROPERTY = "millrace.bench.library";

    /** {@code long loop(char *memory, long *arguments, long count)}. */
    private static final FunctionDescriptor LOOP = FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.ADDRESS,
            ValueLayout.ADDRESS, ValueLayout.JAVA_LONG);

    private final SymbolLookup symbols;

    private CLibrary(SymbolLookup symbols) {
        this.symbols = symbols;
    }

    /** Comparators of this JVM. The class is initialized at its first use, since a JVM of Java's loops needs none. */
    private static final class OfThisJvm {
        private static final CLibrary LIBRARY = load(file());

        private static Path file() {
            String file = System.getProperty(PROPERTY);
            Path compiled = file == null ? CompiledLibrary.compile() : Path.of(file);
            if (compiled == null) {
                throw new IllegalStateException("there is no C compiler: measure Java's loops alone, -p side=JAVA");
            }
            System.setProperty(PROPERTY, compiled.toString()); // for the other process of a ring
            return compiled;
        }
    }

    /**
     * Returns the comparators of this JVM. Compiles them if no property has the location of a compiled library.
     *
     * @return the comparators
     * @throws IllegalStateException without a C compiler
     */
    public static CLibrary ofThisJvm() {
        return OfThisJvm.LIBRARY;
    }

    /**
     * Loads the library permanently.
     *
     * @param file library from {@link CompiledLibrary}
     * @return the library
     */
    @SuppressWarnings("restricted")
    public static CLibrary load(Path file) {
        return new CLibrary(SymbolLookup.libraryLookup(file, Arena.global()));
    }

    /**
     * Returns a loop of C. One call runs the whole batch.
     *
     * @param symbol    its name
     * @param memory    its first argument
     * @param arguments its second argument
     * @return the loop
     */
    public Loop loop(String symbol, MemorySegment memory, MemorySegment arguments) {
        return new Bound(handle(symbol, LOOP), memory, arguments);
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
