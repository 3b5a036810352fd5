package org.millrace.plugin.shim;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Locale;
import java.util.regex.Pattern;
import org.millrace.config.ConfigurationException;
import org.millrace.foreign.CFunction;
import org.millrace.nccl.NcclResult;
import org.millrace.net.ConnectionException;
import org.millrace.plugin.log.NcclLog;

/**
 * What {@code src/main/c/upcalls.h} says, in Java: the functions that the shim calls, by number. All come through one
 * native function, as each costs ten milliseconds and more to make, and NCCL's user waits for it. A call that returns
 * has succeeded. Nothing that it throws leaves it, as that would end the process: it becomes a line in NCCL's log, and
 * a result code.
 */
public final class Upcalls {

    /** {@code MILLRACE_PLUGIN_INTERFACE}: grows with every change of the functions. */
    public static final int VERSION = 10;

    private static final Function[] FUNCTIONS = Function.values();
    private static final int SUCCESS = NcclResult.SUCCESS.code();

    private final Target target;

    /** A function that the shim calls, in the order of its struct. */
    public enum Function {
        INIT(6),
        DEVICES(1),
        GET_PROPERTIES(4),
        LISTEN(5),
        CONNECT(6),
        ACCEPT(3),
        REG_MR(5),
        DEREG_MR(2),
        ISEND(6),
        IRECV(7),
        TEST(3),
        CLOSE_SEND(1),
        CLOSE_RECV(1),
        CLOSE_LISTEN(1),
        FINALIZE(1),
        TUNER_INIT(5),
        TUNER_GET_COLL_INFO(9),
        TUNER_FINALIZE(1),
        GIN_INIT(3),
        GIN_DEVICES(1),
        GIN_GET_PROPERTIES(3),
        GIN_LISTEN(4),
        GIN_CONNECT(7),
        GIN_CREATE_CONTEXT(9),
        GIN_REG_MR_SYM(7),
        GIN_DEREG_MR_SYM(2),
        GIN_DESTROY_CONTEXT(1),
        GIN_CLOSE_COLL(1),
        GIN_CLOSE_LISTEN(1),
        GIN_FINALIZE(1),
        RMA_CREATE_CONTEXT(3),
        RMA_PUT(9),
        RMA_PUT_SIGNAL(13),
        RMA_GET(9),
        RMA_FLUSH(4),
        RMA_TEST(3),
        PROFILER_INIT(6),
        PROFILER_FINALIZE(2),
        PROFILER_PAUSE_ENDED(1),
        COLL_NET_LISTEN(4),
        COLL_NET_CONNECT(5),
        COLL_NET_REDUCE_SUPPORT(3),
        COLL_NET_REG_MR(5),
        COLL_NET_DEREG_MR(2),
        COLL_NET_ALL_REDUCE(9),
        COLL_NET_ALL_GATHER(9),
        COLL_NET_REDUCE_SCATTER(11),
        COLL_NET_TEST(3),
        COLL_NET_CLOSE_COLL(1),
        COLL_NET_CLOSE_LISTEN(1);

        private final int arguments;

        Function(int arguments) {
            this.arguments = arguments;
        }

        int arguments() {
            return arguments;
        }

        /** As C has it: {@code regMr}. */
        String nameInC() {
            return Pattern.compile("_(.)")
                    .matcher(name().toLowerCase(Locale.ROOT))
                    .replaceAll(letter -> letter.group(1).toUpperCase(Locale.ROOT));
        }
    }

    /** What the functions do. */
    public interface Target {
        /**
         * A call.
         *
         * @param arguments the address of its arguments: see {@link Arguments}
         */
        void call(Function function, long arguments);
    }

    /** A call's arguments, each a word of its own whatever its type. Pointers are numbers: see {@link NativeMemory}. */
    public static final class Arguments {

        private Arguments() {}

        /** A pointer or a 64-bit number. */
        public static long word(long arguments, int index) {
            return NativeMemory.getLong(arguments + (long) index * Long.BYTES);
        }

        /** An {@code int}. */
        public static int number(long arguments, int index) {
            return (int) word(arguments, index);
        }
    }

    /** What NCCL asks for is not done, and NCCL does without it: nobody has to be warned. */
    public static final class DeclinedException extends RuntimeException {

        private static final long serialVersionUID = 1L;

        /** Says what is not done, and what is done instead. */
        public DeclinedException(String message) {
            super(message);
        }
    }

    /** Functions that are not called before they are installed. */
    public Upcalls(Target target) {
        this.target = target;
    }

    /**
     * Gives the functions to the shim, and takes its own; they live as long as the process.
     *
     * @param install the shim's {@code millraceInstallUpcalls}
     */
    @SuppressWarnings("restricted") // called by the shim
    public int install(MemorySegment install) {
        try {
            MethodHandle call = MethodHandles.lookup()
                    .findVirtual(Upcalls.class, "call", MethodType.methodType(int.class, int.class, long.class));
            MemorySegment stub = Linker.nativeLinker()
                    .upcallStub(call.bindTo(this),
                            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG),
                            Arena.global());
            MemorySegment shim = Arena.global().allocate(ValueLayout.JAVA_LONG);
            int result = (int) CFunction.at(install).call(VERSION, stub.address(), shim.address());
            if (result == SUCCESS) {
                AsyncErrors.use(shim.get(ValueLayout.JAVA_LONG, 0));
            }
            return result;
        } catch (Throwable e) {
            throw new IllegalStateException("cannot give the plugin's functions to the shim", e);
        }
    }

    /** Where the shim arrives. */
    private int call(int number, long arguments) {
        try {
            target.call(FUNCTIONS[number], arguments);
            return SUCCESS;
        } catch (Throwable failure) {
            return report(number, failure);
        }
    }

    private static int report(int number, Throwable failure) {
        try {
            String line = FUNCTIONS[number].nameInC() + ": " + NcclLog.describe(failure);
            if (failure instanceof DeclinedException) {
                NcclLog.info(line);
            } else {
                NcclLog.warn(line);
            }
            return result(failure).code();
        } catch (Throwable worse) {
            // Out of memory or stack: all that is left is to say that it failed.
            return NcclResult.INTERNAL_ERROR.code();
        }
    }

    private static NcclResult result(Throwable failure) {
        return switch (failure) {
            case ConnectionException lost -> NcclResult.REMOTE_ERROR;
            case ConfigurationException wrong -> NcclResult.INVALID_USAGE;
            case DeclinedException declined -> NcclResult.INVALID_USAGE;
            case IllegalArgumentException wrong -> NcclResult.INVALID_ARGUMENT;
            default -> NcclResult.INTERNAL_ERROR;
        };
    }
}
