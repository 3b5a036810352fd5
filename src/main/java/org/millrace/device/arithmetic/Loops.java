package org.millrace.device.arithmetic;

import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.millrace.DataType;
import org.millrace.element.Float8;

/**
 * The loop for each type and step: made when it is first asked for, then kept, since making one defines a class. Which
 * are {@linkplain StagedLoop staged} was measured: those that HotSpot then vectorizes, and 8-byte sums and products not
 * even so, which are limited by memory either way.
 */
final class Loops {

    private static final Map<DataType, Map<Step, Loop>> MADE = new EnumMap<>(DataType.class);

    static {
        for (DataType type : DataType.values()) {
            MADE.put(type, new ConcurrentHashMap<>());
        }
    }

    private Loops() {}

    static Loop of(DataType type, Step step) {
        Map<Step, Loop> ofType = MADE.get(type);
        Loop made = ofType.get(step);
        return made == null ? ofType.computeIfAbsent(step, each -> make(type, each)) : made;
    }

    private static Loop make(DataType type, Step step) {
        boolean order = step == Step.MINIMUM || step == Step.MAXIMUM;
        return switch (type) {
            case INT8 -> staged(Representation.BYTE, IntegerFunctions.ofInt(step, true, 0xff));
            case UINT8 -> staged(Representation.BYTE, IntegerFunctions.ofInt(step, false, 0xff));
            case INT32 -> staged(Representation.INT, IntegerFunctions.ofInt(step, true, -1));
            case UINT32 -> staged(Representation.INT, IntegerFunctions.ofInt(step, false, -1));
            case INT64 -> Loop.of(Representation.LONG, IntegerFunctions.ofLong(step, true));
            case UINT64 -> Loop.of(Representation.LONG, IntegerFunctions.ofLong(step, false));
            case FLOAT16 -> order ? staged(Representation.SHORT, FloatOrder.ofInt(step, 0x7c00_0000))
                    : staged(Representation.FLOAT16, FloatFunctions.ofFloat(step, type));
            case BFLOAT16 -> order ? staged(Representation.SHORT, FloatOrder.ofInt(step, 0x7f80_0000))
                    : Loop.of(Representation.BFLOAT16, FloatFunctions.ofFloat(step, type));
            case FLOAT32 -> order ? staged(Representation.INT, FloatOrder.ofInt(step, 0x7f80_0000))
                    : Loop.of(Representation.FLOAT32, FloatFunctions.ofFloat(step, type));
            case FLOAT64 -> order ? staged(Representation.LONG, FloatOrder.ofLong(step))
                    : Loop.of(Representation.FLOAT64, FloatFunctions.ofDouble(step));
            case FLOAT8_E4M3 -> Loop.of(Representation.BYTE, new Float8Functions(Float8.E4M3).ofInt(step));
            case FLOAT8_E5M2 -> Loop.of(Representation.BYTE, new Float8Functions(Float8.E5M2).ofInt(step));
        };
    }

    private static Loop staged(Representation representation, ElementFunction function) {
        return new StagedLoop(Loop.of(representation, function), representation.bytes());
    }

    /**
     * Lets a loop store to an array of this thread's and copies that to the destination.
     *
     * <p>
     * HotSpot (to JDK 25 at least) uses vector instructions only where it can prove that the stores of one iteration do
     * not touch the loads of another. Between two pieces of native memory it never can; between native memory and an
     * array it always can. The array stays in the first level of the cache, and copying it costs less than the vectors
     * gain: 12 times as many binary16 sums a second, 7 times as many bytes, twice as many 32-bit integers. Loops over
     * {@code float}, {@code double} and bfloat16 stay as they are even so, since segments are read as integers and
     * reinterpreted, which has no vector form there.
     */
    private record StagedLoop(Loop loop, int elementBytes) implements Loop {

        private static final ThreadLocal<MemorySegment> STAGE =
                ThreadLocal.withInitial(() -> MemorySegment.ofArray(new byte[BLOCK_BYTES]));

        @Override
        public void run(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at, int count,
                long scalar) {
            MemorySegment stage = STAGE.get();
            loop.run(x, xAt, y, yAt, stage, 0, count, scalar);
            MemorySegment.copy(stage, 0, out, at, (long) count * elementBytes);
        }
    }
}
