package org.millrace.bench.measure;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The cores that this process may use, and threads bound to them. Linux. */
public final class Cores {

    private static final int MASK_BYTES = 128;
    private static final MethodHandle GET = handle("sched_getaffinity");
    private static final MethodHandle SET = handle("sched_setaffinity");
    /** Cores of the thread that first uses this class, before any thread is bound to one of them. */
    private static final Cores OF_THIS_PROCESS = ask();

    private final List<Integer> allowed;
    private final int first;
    private final int second;

    private Cores(List<Integer> allowed) {
        this.allowed = allowed;
        this.first = allowed.isEmpty() ? -1 : allowed.getFirst();
        this.second = allowed.stream()
                .filter(core -> core != first && !siblings(first).contains(core))
                .findFirst()
                .orElse(allowed.size() > 1 ? allowed.get(1) : -1);
    }

    /** {@return the cores, none if the kernel does not report them} */
    public static Cores ofThisProcess() {
        return OF_THIS_PROCESS;
    }

    private static Cores ask() {
        List<Integer> allowed = new ArrayList<>();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mask = arena.allocate(MASK_BYTES, Long.BYTES);
            if (call(GET, mask) >= 0) {
                for (int core = 0; core < MASK_BYTES * Byte.SIZE; core++) {
                    if ((mask.get(ValueLayout.JAVA_BYTE, core / Byte.SIZE) >> core % Byte.SIZE & 1) != 0) {
                        allowed.add(core);
                    }
                }
            }
        }
        return new Cores(allowed);
    }

    /**
     * Returns the cores that this process may use.
     *
     * @return their numbers
     */
    public List<Integer> allowed() {
        return allowed;
    }

    /**
     * Returns whether two threads can spin at the same time.
     *
     * @return false with only one core
     */
    public boolean two() {
        return allowed.size() > 1; // the JDK counts one processor for a bound thread
    }

    /**
     * Binds the calling thread to the first core.
     *
     * @return whether it is bound
     */
    public boolean pinToFirst() {
        return first >= 0 && pin(List.of(first));
    }

    /** Unbinds the calling thread, and processes that it starts later, so that they run on all allowed cores. */
    public void unpin() {
        pin(allowed);
    }

    /**
     * Binds the calling thread to a core other than the first. If possible, the core is not the first core's sibling
     * hardware thread.
     *
     * @return whether it is bound
     */
    public boolean pinToSecond() {
        return second >= 0 && pin(List.of(second));
    }

    @Override
    public String toString() {
        return "measuring on core " + first + ", the other side on core " + second + ", of " + allowed.size()
                + " allowed";
    }

    private static boolean pin(List<Integer> cores) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mask = arena.allocate(MASK_BYTES, Long.BYTES);
            for (int core : cores) {
                long at = core / Byte.SIZE;
                mask.set(ValueLayout.JAVA_BYTE, at,
                        (byte) (mask.get(ValueLayout.JAVA_BYTE, at) | 1 << core % Byte.SIZE));
            }
            return call(SET, mask) == 0;
        }
    }

    private static List<Integer> siblings(int core) {
        try {
            List<Integer> siblings = new ArrayList<>();
            for (String range : Files
                    .readString(Path.of("/sys/devices/system/cpu/cpu" + core + "/topology/thread_siblings_list"))
                    .strip()
                    .split(",")) {
                String[] ends = range.split("-");
                for (int sibling = Integer.parseInt(ends[0]); sibling <= Integer
                        .parseInt(ends[ends.length - 1]); sibling++) {
                    siblings.add(sibling);
                }
            }
            return siblings;
        } catch (IOException | NumberFormatException e) {
            return List.of();
        }
    }

    /** Thread 0 is the calling thread. */
    private static int call(MethodHandle function, MemorySegment mask) {
        try {
            return (int) function.invokeExact(0, (long) MASK_BYTES, mask);
        } catch (Throwable e) {
            throw new IllegalStateException("the affinity cannot be asked for or set", e);
        }
    }

    @SuppressWarnings("restricted")
    private static MethodHandle handle(String name) {
        return Linker.nativeLinker()
                .downcallHandle(Linker.nativeLinker().defaultLookup().find(name).orElseThrow(), FunctionDescriptor
                        .of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
    }
}
