package org.millrace.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import org.millrace.config.ConfigurationException;
import org.millrace.foreign.CFunction;
import org.millrace.nccl.NcclResult;
import org.millrace.net.ConnectionException;
import org.millrace.plugin.host.DeclinedException;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.loss.AsyncErrors;

/**
 * Java's counterpart of {@code src/main/c/upcalls.h}: the functions that the shim calls, by number. All calls pass
 * through one native function, because the creation of a native function takes at least ten milliseconds, during which
 * NCCL's user waits. A call that returns without an exception has succeeded. An exception becomes a line in NCCL's log
 * and a result code. An exception must not leave the upcall, because such an exception would end the process.
 */
final class Upcalls {

    /**
     * Version of the functions, {@code MILLRACE_PLUGIN_INTERFACE} in C. It increases with every change of the
     * functions.
     */
    public static final int VERSION = 13;

    private static final int SUCCESS = NcclResult.SUCCESS.code();

    private final Target target;

    /**
     * A function that the shim calls. Each table has its own enum. The constants of all enums, one enum after the
     * other, have the order of the C struct.
     */
    public sealed interface Function {
        /** {@return the name of the enum constant that stands for this function} */
        String name();
    }

    public enum Net implements Function {
        INIT,
        DEVICES,
        GET_PROPERTIES,
        LISTEN,
        CONNECT,
        ACCEPT,
        REG_MR,
        DEREG_MR,
        ISEND,
        IRECV,
        TEST,
        CLOSE_SEND,
        CLOSE_RECV,
        CLOSE_LISTEN,
        FINALIZE
    }

    public enum Tuner implements Function {
        TUNER_INIT, TUNER_GET_COLL_INFO, TUNER_FINALIZE
    }

    public enum Gin implements Function {
        GIN_INIT,
        GIN_DEVICES,
        GIN_GET_PROPERTIES,
        GIN_LISTEN,
        GIN_CONNECT,
        GIN_CREATE_CONTEXT,
        GIN_REG_MR_SYM,
        GIN_DEREG_MR_SYM,
        GIN_DESTROY_CONTEXT,
        GIN_CLOSE_COLL,
        GIN_CLOSE_LISTEN,
        GIN_FINALIZE
    }

    public enum Rma implements Function {
        RMA_CREATE_CONTEXT, RMA_PUT, RMA_PUT_SIGNAL, RMA_GET, RMA_FLUSH, RMA_TEST
    }

    public enum Profiler implements Function {
        PROFILER_INIT, PROFILER_FINALIZE, PROFILER_PAUSE_ENDED
    }

    public enum CollNet implements Function {
        COLL_NET_LISTEN,
        COLL_NET_CONNECT,
        COLL_NET_REDUCE_SUPPORT,
        COLL_NET_REG_MR,
        COLL_NET_DEREG_MR,
        COLL_NET_ALL_REDUCE,
        COLL_NET_ALL_GATHER,
        COLL_NET_REDUCE_SCATTER,
        COLL_NET_TEST,
        COLL_NET_CLOSE_COLL,
        COLL_NET_CLOSE_LISTEN
    }

    static final Function[] FUNCTIONS =
            all(Net.values(), Tuner.values(), Gin.values(), Rma.values(), Profiler.values(), CollNet.values());

    private static Function[] all(Function[]... tables) {
        List<Function> all = new ArrayList<>();
        for (Function[] table : tables) {
            all.addAll(List.of(table));
        }
        return all.toArray(new Function[0]);
    }

    /** Returns a function's name in C, for instance {@code "regMr"}. */
    static String nameInC(Function function) {
        return Pattern.compile("_(.)")
                .matcher(function.name().toLowerCase(Locale.ROOT))
                .replaceAll(letter -> letter.group(1).toUpperCase(Locale.ROOT));
    }

    public interface Target {
        /**
         * Executes a call.
         *
         * @param arguments address of the function's arguments; each occupies one word, whatever its type
         */
        void call(Function function, long arguments);
    }

    public Upcalls(Target target) {
        this.target = target;
    }

    /**
     * Passes Java's functions to the shim and receives the shim's functions. All of them live as long as the process.
     *
     * @param install the shim's {@code millraceInstallUpcalls}
     */
    @SuppressWarnings("restricted") // the new native function is called only by the shim
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
            String line = nameInC(FUNCTIONS[number]) + ": " + NcclLog.describe(failure);
            if (failure instanceof DeclinedException) {
                NcclLog.info(line);
            } else {
                NcclLog.warn(line);
            }
            return result(failure).code();
        } catch (Throwable worse) {
            // Without memory or stack, the failure cannot be described. Only a result code is returned.
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
