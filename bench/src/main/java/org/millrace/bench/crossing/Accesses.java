package org.millrace.bench.crossing;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.bench.access.Access;
import org.millrace.bench.measure.Loop;

/** Ways in which Java code accesses memory, each with the same three accesses. */
public final class Accesses {

    private Accesses() {}

    /**
     * Returns a loop.
     *
     * @param way    way to reach the memory; the memory of {@code static} and {@code array} is chosen before
     * @param access name of the access, as in the comparator's symbol
     * @param line   native memory, the same that {@link org.millrace.bench.access.LineMemory} uses
     * @return the loop
     * @throws LinkageError if Chronicle Bytes is missing, or the JDK does not permit it
     */
    public static Loop loop(String way, String access, MemorySegment line) {
        return switch (way) {
            case "static", "array" ->
                choose(access, Access.GET_ACQUIRE.loop(), Access.SET_RELEASE.loop(), Access.GET_AND_ADD.loop());
            case "instance" -> {
                InstanceSegment segment = new InstanceSegment(line);
                yield choose(access, segment::getAcquire, segment::setRelease, segment::getAndAdd);
            }
            case "local" -> {
                LocalSegment segment = new LocalSegment(line);
                yield choose(access, segment::getAcquire, segment::setRelease, segment::getAndAdd);
            }
            case "buffer" -> {
                DirectBuffer buffer = new DirectBuffer(line.asByteBuffer());
                yield choose(access, buffer::getAcquire, buffer::setRelease, buffer::getAndAdd);
            }
            case "atomics" -> {
                AtomicArray array = new AtomicArray();
                yield choose(access, array::getAcquire, array::setRelease, array::getAndAdd);
            }
            case "chronicle" -> {
                ChronicleStore store = new ChronicleStore(line);
                yield access.equals("set_volatile") ? store::setVolatile
                        : choose(access, store::getAcquire, store::setRelease, store::getAndAdd);
            }
            case "descriptors" -> descriptors(access);
            default -> throw new IllegalArgumentException("there is no way of access '" + way + "'");
        };
    }

    private static Loop descriptors(String access) {
        MemorySegment control = Arena.global().allocate(SendMem.BYTES + RecvMem.BYTES, 4096);
        Descriptors descriptors = new Descriptors(SendMem.of(control.asSlice(0, SendMem.BYTES)),
                RecvMem.of(control.asSlice(SendMem.BYTES, RecvMem.BYTES)));
        return switch (access) {
            case "head_release" -> descriptors::headRelease;
            case "tail_acquire" -> descriptors::tailAcquire;
            case "size_acquire" -> descriptors::sizeAcquire;
            case "size_plain" -> descriptors::sizePlain;
            default -> throw new IllegalArgumentException("descriptors have no access '" + access + "'");
        };
    }

    private static Loop choose(String access, Loop getAcquire, Loop setRelease, Loop getAndAdd) {
        return switch (access) {
            case "get_acquire" -> getAcquire;
            case "set_release" -> setRelease;
            case "get_and_add" -> getAndAdd;
            default -> throw new IllegalArgumentException("there is no access '" + access + "'");
        };
    }
}
