package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Proxy;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.plugin.loss.LossWatch;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.TunerChoices;

/** Costs and channels that the tuner sets. NCCL's cost table has seven algorithms and three protocols. */
class TunerPluginTest {

    private static final float FAR = 1e9f;
    private static int lastChannels;

    /** Returns a data path without connections. */
    private static DataPath path(boolean takesOver, boolean deviceSlots) {
        return (DataPath) Proxy.newProxyInstance(DataPath.class.getClassLoader(), new Class<?>[] {DataPath.class},
                (self, method, arguments) -> switch (method.getName()) {
                    case "takesOver" -> takesOver;
                    case "takesDeviceMemory" -> deviceSlots;
                    default -> null;
                });
    }

    private static float[] costs(long bytes, float... row) {
        return costs(bytes, true, true, row);
    }

    private static float[] costs(long bytes, boolean deviceSlots, boolean choosesChannels, float... row) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment context = arena.allocate(ValueLayout.JAVA_LONG);
            TunerPlugin tuner = new TunerPlugin(library -> new TunerChoices(path(true, deviceSlots), choosesChannels),
                    new LossWatch());
            tuner.tunerInit(context.address(), 1, 2, 2, 0);
            MemorySegment channels = arena.allocate(ValueLayout.JAVA_INT);
            MemorySegment table = arena.allocate(7 * 3 * 4, 4);
            for (int algorithm = 0; algorithm < 7; algorithm++) {
                MemorySegment.copy(row, 0, table, ValueLayout.JAVA_FLOAT, algorithm * 12L, 3);
            }
            tuner.tunerGetCollInfo(context.get(ValueLayout.JAVA_LONG, 0), bytes, table.address(), 7, 3,
                    channels.address());
            lastChannels = channels.get(ValueLayout.JAVA_INT, 0);
            return table.asSlice(12, 12).toArray(ValueLayout.JAVA_FLOAT);
        }
    }

    @Test
    void smallOperationsUseLL() {
        assertArrayEquals(new float[] {5, FAR, FAR}, costs(128 << 10, 5, 6, 7));
    }

    @Test
    void largeOperationsUseSimple() {
        assertArrayEquals(new float[] {FAR, FAR, 7}, costs((128 << 10) + 1, 5, 6, 7));
    }

    @ParameterizedTest
    @CsvSource({"8191, 0", "8192, 2", "131072, 2", "131073, 1", "1048576, 1", "2097152, 2", "3145728, 2", "4194304, 4",
            "16777215, 4", "16777216, 0"})
    void aGpusCopiesAreFewWhereTheyAreShort(long bytes, int channels) {
        costs(bytes, 5, 6, 7);
        assertEquals(channels, lastChannels);
    }

    @ParameterizedTest
    @CsvSource({"8, 0", "8191, 0", "8192, 2", "131072, 2", "1048575, 2", "1048576, 4", "16777215, 4", "16777216, 0"})
    void threadsCopyFewSlicesAndLongOnes(long bytes, int channels) {
        costs(bytes, false, true, 5, 6, 7);
        assertEquals(channels, lastChannels);
    }

    @ParameterizedTest
    @CsvSource({"8192, true", "1048576, true", "1048576, false", "4194304, true"})
    void theUsersNumberOfChannelsStays(long bytes, boolean deviceSlots) {
        costs(bytes, deviceSlots, false, 5, 6, 7);
        assertEquals(0, lastChannels);
    }

    @Test
    void whatAnAlgorithmCannotDoStaysForbidden() {
        assertArrayEquals(new float[] {-1, 6, 7}, costs(8, -1, 6, 7), "without LL the others are all there is");
        assertArrayEquals(new float[] {5, -1, FAR}, costs(8, 5, -1, 7));
        assertArrayEquals(new float[] {-1, -1, 7}, costs(1 << 30, -1, -1, 7));
    }

    /**
     * A table of two protocols has no column for protocol Simple. A write to that column would change the next row, or
     * memory beyond the table.
     */
    @Test
    void aTableOfTwoProtocolsIsNotWritten() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment table = arena.allocate(3 * 4, 4);
            new TunerChoices(path(true, false), false).tune(2, 8, table.address(), 1, 2, 0);
            assertArrayEquals(new float[3], table.toArray(ValueLayout.JAVA_FLOAT));
        }
    }

    @Test
    void withoutATakeoverNothingIsSaid() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment context = arena.allocate(ValueLayout.JAVA_LONG);
            new TunerPlugin(library -> new TunerChoices(path(false, false), false), new LossWatch())
                    .tunerInit(context.address(), 1, 2, 2, 0);
            assertEquals(0, context.get(ValueLayout.JAVA_LONG, 0));
            context.set(ValueLayout.JAVA_LONG, 0, 1);
            new TunerPlugin(library -> null, new LossWatch()).tunerInit(context.address(), 1, 2, 2, 0);
            assertEquals(0, context.get(ValueLayout.JAVA_LONG, 0));
        }
    }
}
