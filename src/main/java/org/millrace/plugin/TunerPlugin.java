package org.millrace.plugin;

import java.lang.foreign.ValueLayout;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.Protocol;
import org.millrace.net.ConnectionException;

/**
 * The operations of NCCL's tuner tables: which protocol a collective uses. NCCL estimates that from the speed of a
 * network card; what it costs here was measured (two H200s, NCCL 2.28.9, both networks): a slot of LL lines is moved by
 * one pass of the proxy and shown line by line, and beats Simple up to a few hundred kilobytes a rank; LL128 is never
 * the best of the three. Which algorithm is used stays NCCL's choice. All ranks decide alike, as they must: from size,
 * number of ranks and operation alone.
 */
final class TunerPlugin {

    /**
     * Where Simple overtakes LL. Of an all-reduce of two ranks LL takes this part of Simple's time, with 16 cores a
     * rank and with 2: of 128 KiB 0.6 to 0.8 and 1.05, of 256 KiB 0.6 to 0.86 and 1.7, of 512 KiB 1.1 and more.
     */
    private static final long LL_BYTES_PER_RANK = 64 << 10;
    /** Far above any estimate in the table, which is in microseconds. */
    private static final float UNATTRACTIVE = 1e9f;
    /**
     * What one channel is for where a GPU makes the copies: each costs the same time however short it is. Of an
     * all-reduce of two ranks, two cores each, 1, 2, 4 and 8 channels take 91, 134, 199 and 209 us for 512 KiB; 146,
     * 124, 171 and 340 for 2 MiB; 523, 251, 218 and 421 for 8 MiB.
     */
    private static final long BYTES_PER_CHANNEL = 1 << 20;
    /** From here on as many channels as NCCL has. */
    private static final long BYTES_FOR_ALL_CHANNELS = 16 << 20;
    private static final long MOST_OF_SOME_CHANNELS = 4;
    /**
     * Where threads copy: slices of fewer rings are longer, and each costs its calls of the kernel and its passes. An
     * all-reduce of two ranks over TCP takes with 8 channels and with 2, two cores each, 161 and 114 us for 32 KiB, 409
     * and 229 for 256 KiB; with 8, 4 and 2 channels 1485, 929 and 793 for 2 MiB; with 16 cores each 164 and 105 for 256
     * KiB, and 18.7 and, with 4, 24.9 ms for 128 MiB.
     */
    private static final long BYTES_FOR_TWO_CHANNELS = 8 << 10;
    private static final long BYTES_FOR_FOUR_CHANNELS = 1 << 20;

    private final LongFunction<@Nullable Choices> choices;
    private final LossWatch losses;
    private final HandleTable handles = new HandleTable();

    /**
     * What the tuner of an NCCL goes by; the same on every rank.
     *
     * @param path            what moves the data, and is told of every collective that is enqueued, before its kernel
     *                        is launched
     * @param choosesChannels whether the user leaves the number of channels to the plugin
     */
    public record Choices(DataPath path, boolean choosesChannels) {

        /**
         * Leaves one protocol of each algorithm attractive, and says how many channels if {@code channels} is not 0.
         */
        void tune(long ranks, long bytes, long costs, int algorithms, int protocols, long channels) {
            boolean small = bytes <= ranks * LL_BYTES_PER_RANK;
            if (channels != 0 && choosesChannels) {
                NativeMemory.putInt(channels,
                        !small && path.takesDeviceMemory() ? channelsOfCopies(bytes) : channelsOfThreads(bytes));
            }
            if (protocols <= Protocol.SIMPLE.id()) {
                return; // a row without a column for each protocol
            }
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
    }

    private record Tuned(long communicator, long ranks, Choices by) {
    }

    /**
     * A tuner for the connections of a plugin.
     *
     * @param choices by the library that calls; null for one that has no connections
     * @param losses  which communicators have lost a peer
     */
    public TunerPlugin(LongFunction<@Nullable Choices> choices, LossWatch losses) {
        this.choices = choices;
        this.losses = losses;
    }

    /**
     * The context is null if there is nothing to say, as where NCCL's own proxy moves the data: then the shim does not
     * call again.
     */
    public void tunerInit(long context, long communicator, long ranks, long nodes, long library) {
        Choices by = choices.apply(library);
        NativeMemory.putLong(context,
                by != null && by.path.takesOver() && nodes > 1 ? handles.add(new Tuned(communicator, ranks, by)) : 0);
    }

    /**
     * NCCL asks with every collective that is enqueued, and gives an error of the answer to the program. It is the only
     * callback through which NCCL accepts an error while a communicator is in use: a program that enqueues more on one
     * that has lost a peer is told here.
     */
    public void tunerGetCollInfo(long context, long bytes, long costs, int algorithms, int protocols, long channels) {
        Tuned tuned = handles.get(context, Tuned.class);
        failIfPeerIsLost(tuned.communicator);
        tuned.by.path.operationComing();
        tuned.by.tune(tuned.ranks, bytes, costs, algorithms, protocols, channels);
    }

    private void failIfPeerIsLost(long communicator) {
        String problem = losses.deliver(communicator);
        if (problem != null) {
            throw new ConnectionException("the communicator has lost a peer, abort it: " + problem);
        }
    }

    /** How many channels an operation with copies by GPUs has; 0 if that is NCCL's matter. */
    private static int channelsOfCopies(long bytes) {
        return bytes >= BYTES_FOR_ALL_CHANNELS ? 0
                : (int) Long.highestOneBit(Math.clamp(bytes / BYTES_PER_CHANNEL, 1, MOST_OF_SOME_CHANNELS));
    }

    /** The same of one that threads copy. */
    private static int channelsOfThreads(long bytes) {
        if (bytes < BYTES_FOR_TWO_CHANNELS || bytes >= BYTES_FOR_ALL_CHANNELS) {
            return 0;
        }
        return bytes < BYTES_FOR_FOUR_CHANNELS ? 2 : 4;
    }

    /** A negative cost says that the algorithm cannot have the protocol: it stays. */
    private static void discourage(long row, Protocol protocol) {
        var cost = NativeMemory.at(row + (long) protocol.id() * Float.BYTES, Float.BYTES);
        if (cost.get(ValueLayout.JAVA_FLOAT, 0) >= 0) {
            cost.set(ValueLayout.JAVA_FLOAT, 0, UNATTRACTIVE);
        }
    }

    public void tunerFinalize(long context) {
        handles.remove(context, Tuned.class);
    }
}
