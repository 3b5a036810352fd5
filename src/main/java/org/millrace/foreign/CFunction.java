package org.millrace.foreign;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.Optional;

/**
 * A C function with up to nine arguments, which are integers or pointers.
 *
 * <p>
 * The JVM generates code for each new signature of calls. The generation takes ten milliseconds or more, and delays the
 * start of a program. Therefore all functions with up to six arguments are called with one signature of six arguments.
 * All other functions are called with one signature of nine arguments. A called function ignores the additional
 * arguments. On x86-64 and AArch64, each of the first six integer arguments is in a separate register. Each further
 * argument is in a register or in eight bytes of the stack. A function reads only the arguments that it declares. If an
 * argument is an {@code int}, the function reads only the lower half of the register (System V ABI 3.2.3, AAPCS64
 * 6.8.2).
 *
 * <p>
 * A function with a variable number of arguments is called like any other function: the linker's code states in each
 * call that no vector register holds an argument.
 *
 * <p>
 * The result of a function is in the low bits of the returned value, according to the size of its type. An {@code int}
 * result is {@code (int) call(...)}. A call allocates nothing, except {@link #callForErrno}.
 */
@SuppressWarnings("restricted") // safe if the caller passes the arguments that the function declares
public final class CFunction {

    private static final int ARGUMENTS = 6;
    private static final MethodHandle CALL = link(ARGUMENTS);

    /** Handle for functions with seven to nine arguments, linked at the first call of such a function. */
    private static final class Longer {
        static final MethodHandle CALL = link(9);

        private Longer() {}
    }

    /** Handle for functions that set an error number, linked at the first call of such a function. */
    private static final class WithErrno {
        static final StructLayout STATE = Linker.Option.captureStateLayout();
        static final long OFFSET = STATE.byteOffset(PathElement.groupElement("errno"));
        static final MethodHandle CALL = link(ARGUMENTS, Linker.Option.captureCallState("errno"));

        private WithErrno() {}
    }

    private final MemorySegment address;

    private CFunction(MemorySegment address) {
        this.address = address;
    }

    public static CFunction at(MemorySegment address) {
        return new CFunction(MemorySegment.ofAddress(address.address()));
    }

    /** @throws UnsatisfiedLinkError if the C library has no function with that name */
    public static CFunction named(String name) {
        return find(name).orElseThrow(() -> new UnsatisfiedLinkError("the C library has no " + name));
    }

    /** Returns a function of the C library; empty if it has no function with that name. */
    public static Optional<CFunction> find(String name) {
        return Linker.nativeLinker().defaultLookup().find(name).map(CFunction::at);
    }

    private static MethodHandle link(int number, Linker.Option... options) {
        ValueLayout[] arguments = new ValueLayout[number];
        Arrays.fill(arguments, ValueLayout.JAVA_LONG);
        return Linker.nativeLinker().downcallHandle(FunctionDescriptor.of(ValueLayout.JAVA_LONG, arguments), options);
    }

    public long address() {
        return address.address();
    }

    public long call() {
        return call(0, 0, 0, 0, 0, 0);
    }

    public long call(long first) {
        return call(first, 0, 0, 0, 0, 0);
    }

    public long call(long first, long second) {
        return call(first, second, 0, 0, 0, 0);
    }

    public long call(long first, long second, long third) {
        return call(first, second, third, 0, 0, 0);
    }

    public long call(long first, long second, long third, long fourth) {
        return call(first, second, third, fourth, 0, 0);
    }

    public long call(long first, long second, long third, long fourth, long fifth) {
        return call(first, second, third, fourth, fifth, 0);
    }

    public long call(long first, long second, long third, long fourth, long fifth, long sixth) {
        try {
            return (long) CALL.invokeExact(address, first, second, third, fourth, fifth, sixth);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    public long call(long first, long second, long third, long fourth, long fifth, long sixth, long seventh,
            long eighth, long ninth) {
        try {
            return (long) Longer.CALL.invokeExact(address, first, second, third, fourth, fifth, sixth, seventh, eighth,
                    ninth);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** Allocates room for the error number of {@link #callForErrno}. */
    public static MemorySegment newErrno(Arena arena) {
        return arena.allocate(WithErrno.STATE);
    }

    /**
     * Calls a function that on failure returns a negative number and sets {@code errno}. Unlike the other calls, this
     * call can allocate: the JVM makes a slice of the memory for the error number.
     *
     * @param errno memory from {@link #newErrno} that no other thread uses during the call
     * @return the result of the function, or the negated error number
     */
    public long callForErrno(MemorySegment errno, long first, long second, long third, long fourth, long fifth,
            long sixth) {
        try {
            long result = (long) WithErrno.CALL.invokeExact(address, errno, first, second, third, fourth, fifth, sixth);
            return result < 0 ? -errno.get(ValueLayout.JAVA_INT, WithErrno.OFFSET) : result;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }
}
