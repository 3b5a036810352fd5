package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Memory segments over addresses that only a GPU may access.
 *
 * <p>
 * Such a segment has an address and a size, so it can be sliced, and the bounds are checked. The segment belongs to a
 * confined arena of a thread that has ended. Every access from Java therefore throws a {@link WrongThreadException}
 * instead of crashing the process. {@link MemorySegment#isAccessibleBy} returns false for such a segment and thus
 * distinguishes it from host memory.
 */
public final class DeviceSegments {

    private static final MemorySegment EVERYWHERE = Owner.everywhere();

    private DeviceSegments() {}

    /** {@return a segment over device memory, which Java code can slice, but neither read nor write} */
    public static MemorySegment of(long address, long bytes) {
        return EVERYWHERE.asSlice(address, bytes);
    }

    /** {@return whether a segment was created by this class; no Java thread can access such a segment} */
    public static boolean isDevice(MemorySegment segment) {
        return segment.isNative() && segment.scope().equals(EVERYWHERE.scope());
    }

    /**
     * Checks a segment and returns its address, for a native function. The function receives the address instead of the
     * segment, because a downcall refuses segments that belong to another thread.
     *
     * @param role  name of the segment in messages
     * @param bytes number of bytes of the segment that the function will access
     * @throws IllegalArgumentException if the segment lies in the Java heap, is closed, or is too small
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
     * {@return the {@linkplain #address address} of a segment as a segment of size 0, for generated functions, which
     * take their pointers as segments}
     *
     * @param role  name of the segment in messages
     * @param bytes number of bytes of the segment that the function will access
     * @throws IllegalArgumentException if the segment lies in the Java heap, is closed, or is too small
     */
    public static MemorySegment pointer(String role, MemorySegment segment, long bytes) {
        return MemorySegment.ofAddress(address(role, segment, bytes));
    }

    /**
     * The thread that owns all device segments. It creates one segment over all addresses and then ends. All other
     * device segments are slices of that segment.
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
