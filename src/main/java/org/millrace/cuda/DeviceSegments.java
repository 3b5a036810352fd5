package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Memory segments over addresses that only a GPU may access.
 *
 * <p>
 * They have an address and a size, so they can be sliced and bounds are checked. Every access from Java throws a
 * {@link WrongThreadException}, where it would otherwise crash the process. They belong to a confined arena of a thread
 * that has ended, and {@link MemorySegment#isAccessibleBy} distinguishes them from host memory.
 */
public final class DeviceSegments {

    private static final MemorySegment EVERYWHERE = Owner.everywhere();

    private DeviceSegments() {}

    /** {@return a segment over device memory, which can be sliced, but not read or written} */
    public static MemorySegment of(long address, long bytes) {
        return EVERYWHERE.asSlice(address, bytes);
    }

    /** {@return whether a segment is a device segment, which no Java thread can access} */
    public static boolean isDevice(MemorySegment segment) {
        return segment.isNative() && segment.scope().equals(EVERYWHERE.scope());
    }

    /**
     * Checks a segment and returns the address that is passed to a native function. The address alone is passed,
     * because a downcall refuses segments of other threads.
     *
     * @param bytes number of its bytes that the function will access
     * @throws IllegalArgumentException if it lies in the Java heap, is closed, or is too small
     */
    public static long address(String role, MemorySegment segment, long bytes) {
        if (segment.byteSize() < bytes) {
            throw new IllegalArgumentException(
                    role + " has " + segment.byteSize() + " bytes, but " + bytes + " are needed");
        }
        if (!segment.isNative()) {
            throw new IllegalArgumentException(role
                    + " lies in the Java heap, where the garbage collector moves it: allocate it from the device, as"
                    + " pinned memory, or from an Arena");
        }
        if (!segment.scope().isAlive()) {
            throw new IllegalArgumentException(role + " is closed memory");
        }
        return segment.address();
    }

    /**
     * {@return the same {@linkplain #address address} as a segment of size 0, for generated functions, which take a
     * segment}
     *
     * @param bytes number of its bytes that the function will access
     * @throws IllegalArgumentException if it lies in the Java heap, is closed, or is too small
     */
    public static MemorySegment pointer(String role, MemorySegment segment, long bytes) {
        return MemorySegment.ofAddress(address(role, segment, bytes));
    }

    /**
     * The thread that owns all device segments. It ends as soon as it has created the segment from which the others are
     * sliced.
     */
    private static final class Owner implements Runnable {

        private @Nullable MemorySegment everywhere;

        static MemorySegment everywhere() {
            Owner owner = new Owner();
            Thread thread = new Thread(owner, "millrace-device-segments");
            thread.start();
            boolean interrupted = false;
            while (owner.everywhere == null || thread.isAlive()) {
                try {
                    thread.join();
                } catch (InterruptedException later) {
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            return owner.everywhere;
        }

        @Override
        @SuppressWarnings("restricted")
        public void run() {
            everywhere = MemorySegment.NULL.reinterpret(Long.MAX_VALUE, Arena.ofConfined(), null);
        }
    }
}
