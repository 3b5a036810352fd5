package org.millrace.bench.crossing;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.bench.access.Access;
import org.millrace.bench.measure.Loop;

/** Ways in which Java code accesses memory, each with the same three accesses. */
public final class Accesses {

    private Accesses() {}

    /**
     * Returns the loops of a way.
     *
     * @param way  one of {@link #WAYS}
     * @param line native memory, the same that {@link org.millrace.bench.access.LineMemory} uses
     * @return the loops, by the name of the access
     */
    public static Map<String, Loop> of(String way, MemorySegment line) {
        return switch (way) {
            case "static" ->
                loops(Access.GET_ACQUIRE.onSegment(), Access.SET_RELEASE.onSegment(), Access.GET_AND_ADD.onSegment());
            case "array" ->
                loops(Access.GET_ACQUIRE.onArray(), Access.SET_RELEASE.onArray(), Access.GET_AND_ADD.onArray());
            case "instance" -> {
                InstanceSegment segment = new InstanceSegment(line);
                yield loops(segment::getAcquire, segment::setRelease, segment::getAndAdd);
            }
            case "local" -> {
                LocalSegment segment = new LocalSegment(line);
                yield loops(segment::getAcquire, segment::setRelease, segment::getAndAdd);
            }
            case "buffer" -> {
                DirectBuffer buffer = new DirectBuffer(line.asByteBuffer());
                yield loops(buffer::getAcquire, buffer::setRelease, buffer::getAndAdd);
            }
            case "atomics" -> {
                AtomicArray array = new AtomicArray();
                yield loops(array::getAcquire, array::setRelease, array::getAndAdd);
            }
            default -> throw new IllegalArgumentException("there is no way of access '" + way + "'");
        };
    }

    /** Names of the ways, which {@link #of} accepts, with descriptions for readers. */
    public static final Map<String, String> WAYS = ways();

    private static Map<String, String> ways() {
        Map<String, String> ways = new LinkedHashMap<>();
        ways.put("static", "segment, static final");
        ways.put("local", "segment, instance field copied to a local variable");
        ways.put("instance", "segment, instance field");
        ways.put("buffer", "direct ByteBuffer, view VarHandle, instance field");
        ways.put("array", "long[], static final");
        ways.put("atomics", "AtomicLongArray, instance field");
        return ways;
    }

    /**
     * Returns Chronicle Bytes' loops.
     *
     * @param line native memory
     * @return the loops, by the name of the comparator
     * @throws LinkageError if Chronicle Bytes is missing, or the JDK does not permit it
     */
    public static Map<String, Loop> chronicle(MemorySegment line) {
        ChronicleStore store = new ChronicleStore(line);
        Map<String, Loop> loops = loops(store::getAcquire, store::setRelease, store::getAndAdd);
        loops.put("set_volatile", store::setVolatile);
        return loops;
    }

    /**
     * Returns the loops of a connection's descriptors.
     *
     * @return the loops, by the name of the comparator
     */
    public static Map<String, Loop> descriptors() {
        MemorySegment control = Arena.global().allocate(SendMem.BYTES + RecvMem.BYTES, 4096);
        Descriptors descriptors = new Descriptors(SendMem.of(control.asSlice(0, SendMem.BYTES)),
                RecvMem.of(control.asSlice(SendMem.BYTES, RecvMem.BYTES)));
        Map<String, Loop> loops = new LinkedHashMap<>();
        loops.put("head_release", descriptors::headRelease);
        loops.put("tail_acquire", descriptors::tailAcquire);
        loops.put("size_acquire", descriptors::sizeAcquire);
        loops.put("size_plain", descriptors::sizePlain);
        return loops;
    }

    private static Map<String, Loop> loops(Loop getAcquire, Loop setRelease, Loop getAndAdd) {
        Map<String, Loop> loops = new LinkedHashMap<>();
        loops.put("get_acquire", getAcquire);
        loops.put("set_release", setRelease);
        loops.put("get_and_add", getAndAdd);
        return loops;
    }
}
