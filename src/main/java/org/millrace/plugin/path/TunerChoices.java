package org.millrace.plugin.path;

import java.lang.foreign.ValueLayout;
import org.millrace.abi.Protocol;
import org.millrace.plugin.host.NativeMemory;

/**
 * Choice of a collective's protocol and number of channels. NCCL estimates costs from the speed of a network card. The
 * plugin instead uses costs that were measured on two H200s with NCCL 2.28.9, over shared memory and over TCP. With
 * many cores, LL is faster than Simple up to a few hundred kilobytes for each rank. The reason is that one pass of the
 * proxy moves a slot of LL lines and publishes it line by line. LL128 is never the fastest protocol. NCCL still chooses
 * the algorithm. All ranks must make the same choice, so the choice depends only on size, number of ranks and
 * operation.
 *
 * @param path            data path of the connections
 * @param choosesChannels whether the user leaves the number of channels to the plugin
 */
public record TunerChoices(DataPath path, boolean choosesChannels) {

    /**
     * Maximum number of bytes for each rank at which the plugin chooses LL. With more bytes, Simple is faster on few
     * cores. Measured: the time of LL divided by the time of Simple, in an all-reduce of two ranks. With 16 cores for
     * each rank, the ratio is 0.6 to 0.8 for 128 KiB and 0.6 to 0.86 for 256 KiB. With 2 cores for each rank, the ratio
     * is 1.05 for 128 KiB and 1.7 for 256 KiB. For 512 KiB the ratio is 1.1 or more.
     */
    private static final long LL_BYTES_PER_RANK = 64 << 10;
    /** Cost in microseconds, far above any cost that NCCL estimates. */
    private static final float UNATTRACTIVE = 1e9f;
    /**
     * Bytes for each channel if a GPU makes the copies. Each copy has a fixed cost that does not depend on its length.
     * Measured: an all-reduce of two ranks with two cores each, with 1, 2, 4 and 8 channels. The times are 91, 134, 199
     * and 209 us for 512 KiB. They are 146, 124, 171 and 340 us for 2 MiB, and 523, 251, 218 and 421 us for 8 MiB.
     */
    private static final long BYTES_PER_CHANNEL = 1 << 20;
    /** Minimum size at which all of NCCL's channels are used. */
    private static final long BYTES_FOR_ALL_CHANNELS = 16 << 20;
    private static final long MAX_OF_SOME_CHANNELS = 4;
    /**
     * Minimum sizes in bytes for two and for four channels, if threads copy. With fewer channels, slices are longer,
     * and each slice costs system calls and passes.
     *
     * <p>
     * Measured: an all-reduce of two ranks over TCP. With two cores for each rank, 8 and 2 channels take 161 and 114 us
     * for 32 KiB. For 256 KiB they take 409 and 229 us. For 2 MiB, 8, 4 and 2 channels take 1485, 929 and 793 us. With
     * 16 cores for each rank, 8 and 2 channels take 164 and 105 us for 256 KiB. For 128 MiB, 8 and 4 channels take 18.7
     * and 24.9 ms.
     */
    private static final long BYTES_FOR_TWO_CHANNELS = 8 << 10;
    private static final long BYTES_FOR_FOUR_CHANNELS = 1 << 20;

    /**
     * For each algorithm, raises the cost of all protocols except one, so that NCCL chooses that protocol. Writes the
     * number of channels if {@code channels} is not 0.
     */
    public void tune(long ranks, long bytes, long costs, int algorithms, int protocols, long channels) {
        boolean small = bytes <= ranks * LL_BYTES_PER_RANK;
        if (channels != 0 && choosesChannels) {
            NativeMemory.putInt(channels,
                    !small && path.takesDeviceMemory() ? channelsOfCopies(bytes) : channelsOfThreads(bytes));
        }
        if (protocols <= Protocol.SIMPLE.id()) {
            // The table of costs does not contain all three protocols.
            return;
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

    /** Returns the number of channels of an operation if GPUs copy; 0 if NCCL chooses the number. */
    private static int channelsOfCopies(long bytes) {
        return bytes >= BYTES_FOR_ALL_CHANNELS ? 0
                : (int) Long.highestOneBit(Math.clamp(bytes / BYTES_PER_CHANNEL, 1, MAX_OF_SOME_CHANNELS));
    }

    /** Returns the number of channels of an operation if threads copy; 0 if NCCL chooses the number. */
    private static int channelsOfThreads(long bytes) {
        if (bytes < BYTES_FOR_TWO_CHANNELS || bytes >= BYTES_FOR_ALL_CHANNELS) {
            return 0;
        }
        return bytes < BYTES_FOR_FOUR_CHANNELS ? 2 : 4;
    }

    /**
     * Raises the cost of a protocol to {@link #UNATTRACTIVE}, unless the cost is negative. A negative cost means that
     * the algorithm does not support the protocol.
     */
    private static void discourage(long row, Protocol protocol) {
        var cost = NativeMemory.at(row + (long) protocol.id() * Float.BYTES, Float.BYTES);
        if (cost.get(ValueLayout.JAVA_FLOAT, 0) >= 0) {
            cost.set(ValueLayout.JAVA_FLOAT, 0, UNATTRACTIVE);
        }
    }
}
