package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Memory segments over addresses that only a GPU may follow.
 *
 * <p>
 * They have the address and the size, so that they can be sliced and checked against bounds, but every access from Java
 * is a {@link WrongThreadException} where it would otherwise end the process: they belong to a confined arena whose
 * thread has ended, and {@link MemorySegment#isAccessibleBy} tells them from host memory.
 */
public final class DeviceSegments {

    private static final MemorySegment EVERYWHERE = Owner.everywhere();

    private DeviceSegments() {}

    /** {@return a segment over device memory, which can be sliced, but not read or written} */
    public static MemorySegment of(long address, long bytes) {
        return EVERYWHERE.asSlice(address, bytes);
    }

    /** {@return whether a segment is one of these, which no Java thread can access} */
    public static boolean isDevice(MemorySegment segment) {
        return segment.isNative() && segment.scope().equals(EVERYWHERE.scope());
    }

    /**
     * What a native function is given for a segment, after checking it: just the address, because a downcall refuses
     * segments of other threads.
     *
     * @param bytes how much of it the function will touch
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
     * {@return the same {@linkplain #address address} for generated functions, which take a segment: one of no size}
     *
     * @param bytes how much of it the function will touch
     * @throws IllegalArgumentException if it lies in the Java heap, is closed, or is too small
     */
    public static MemorySegment pointer(String role, MemorySegment segment, long bytes) {
        return MemorySegment.ofAddress(address(role, segment, bytes));
    }

    /**
     * The thread that owns all device segments; it ends as soon as it has made the one that the others are cut from.
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
