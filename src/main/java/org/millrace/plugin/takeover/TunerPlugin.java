package org.millrace.plugin.takeover;

import java.lang.foreign.ValueLayout;
import java.util.function.BooleanSupplier;
import org.millrace.abi.Protocol;
import org.millrace.plugin.shim.NativeMemory;

/**
 * The operations of NCCL's tuner tables: which protocol a collective uses. NCCL estimates that from the speed of a
 * network card; what it costs here was measured (two H200s, NCCL 2.28.9, both networks): a slot of LL lines is moved by
 * one pass of the proxy and shown line by line, and beats Simple up to a few hundred kilobytes a rank; LL128 is never
 * the best of the three. Which algorithm is used stays NCCL's choice. All ranks decide alike, as they must: from size,
 * number of ranks and operation alone.
 */
public final class TunerPlugin {

    /**
     * Where Simple overtakes LL: 64 KiB to 256 KiB an all-reduce of two ranks takes 0.6 to 0.86 of Simple's time, 512
     * KiB 1.1.
     */
    private static final long LL_BYTES_PER_RANK = 128 << 10;
    /** Far above any estimate in the table, which is in microseconds. */
    private static final float UNATTRACTIVE = 1e9f;

    private final BooleanSupplier takesOver;
    private final Runnable operationComing;

    /**
     * A tuner for the connections of a plugin.
     *
     * @param takesOver       whether Java moves the data of this process' connections: NCCL's own proxy is NCCL's own
     *                        to tune
     * @param operationComing is told of every collective that is enqueued, before its kernel is launched
     */
    public TunerPlugin(BooleanSupplier takesOver, Runnable operationComing) {
        this.takesOver = takesOver;
        this.operationComing = operationComing;
    }

    /** The context is the number of ranks; null if there is nothing to say, and then the shim does not call again. */
    public void tunerInit(long context, long communicator, long ranks, long nodes, long constants) {
        NativeMemory.putLong(context, takesOver.getAsBoolean() && nodes > 1 ? ranks : 0);
    }

    public void tunerGetCollInfo(long context, int function, long bytes, int pipelinedOperations, long costs,
            int algorithms, int protocols, int registered, long channels) {
        operationComing.run();
        boolean small = bytes <= context * LL_BYTES_PER_RANK;
        for (int algorithm = 0; algorithm < algorithms; algorithm++) {
            long row = costs + (long) algorithm * protocols * Float.BYTES;
            if (small && NativeMemory.at(row, Float.BYTES).get(ValueLayout.JAVA_FLOAT, 0) >= 0) {
                discourage(row, Protocol.LL128);
                discourage(row, Protocol.SIMPLE);
            } else if (!small) {
                discourage(row, Protocol.LL);
                discourage(row, Protocol.LL128);
            }
        }
    }

    /** A negative cost says that the algorithm cannot have the protocol: it stays. */
    private static void discourage(long row, Protocol protocol) {
        var cost = NativeMemory.at(row + (long) protocol.id() * Float.BYTES, Float.BYTES);
        if (cost.get(ValueLayout.JAVA_FLOAT, 0) >= 0) {
            cost.set(ValueLayout.JAVA_FLOAT, 0, UNATTRACTIVE);
        }
    }

    public void tunerFinalize(long context) {}
}
