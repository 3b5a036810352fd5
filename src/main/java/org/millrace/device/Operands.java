package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;

/**
 * Checks what a program hands to a collective before anything is done with it. What else a device asks of memory is its
 * own matter.
 */
public final class Operands {

    /** For {@link #checkOverlap}: the operation cannot run in place. */
    public static final long NEVER_IN_PLACE = Long.MIN_VALUE;

    private Operands() {}

    /**
     * Checks one operand.
     *
     * @param what    rank, operation and operand, for the message
     * @param segment the operand
     * @param count   how many elements the operation takes from there, or puts there
     * @param type    the elements
     * @param written whether they are put there
     * @throws IllegalArgumentException if the count is negative, or if the segment is closed, in the Java heap, too
     *                                  small, misaligned, or read-only though written
     */
    public static void check(String what, MemorySegment segment, long count, DataType type, boolean written) {
        if (count < 0) {
            throw new IllegalArgumentException(what + ": count " + count + " is negative");
        }
        long needed = Math.multiplyExact(count, type.bytes());
        if (!segment.scope().isAlive()) {
            throw new IllegalArgumentException(
                    what + ": the segment's arena is closed; keep it open until the operation has completed");
        }
        if (!segment.isNative()) {
            throw new IllegalArgumentException(what
                    + ": a heap segment cannot be an operand, because the collector moves it; take memory from Device.allocate");
        }
        if (segment.byteSize() < needed) {
            throw new IllegalArgumentException(what + ": " + count + " elements of " + type.label() + " take " + needed
                    + " bytes, the segment has " + segment.byteSize());
        }
        if (segment.address() % type.bytes() != 0) {
            throw new IllegalArgumentException(what + ": address 0x" + Long.toHexString(segment.address())
                    + " is not aligned to the " + type.bytes() + " bytes of a " + type.label());
        }
        if (written && segment.isReadOnly()) {
            throw new IllegalArgumentException(what + ": the segment is read-only");
        }
    }

    /**
     * Checks that a thread of the device can reach an operand.
     *
     * @param what    rank, operation and operand, for the message
     * @param segment the operand
     * @param user    the thread
     * @throws IllegalArgumentException if the segment belongs to another thread
     */
    public static void checkReach(String what, MemorySegment segment, Thread user) {
        if (!segment.isAccessibleBy(user)) {
            throw new IllegalArgumentException(
                    what + ": the segment belongs to a confined arena, and the device's thread " + user.getName()
                            + " may not touch it; use Arena.ofShared()");
        }
    }

    /**
     * Refuses operands that share some bytes, unless they lie as for an operation in place.
     *
     * @param send         what is read
     * @param sendBytes    how much of it
     * @param receive      what is written
     * @param receiveBytes how much of it
     * @param inPlace      how many bytes {@code send} begins behind {@code receive} in an operation in place; 0 where
     *                     they are the same, or {@link #NEVER_IN_PLACE}
     * @throws IllegalArgumentException if they overlap in any other way
     */
    public static void checkOverlap(MemorySegment send, long sendBytes, MemorySegment receive, long receiveBytes,
            long inPlace) {
        long shared = Math.min(send.address() + sendBytes, receive.address() + receiveBytes)
                - Math.max(send.address(), receive.address());
        if (shared > 0 && send.address() - receive.address() != inPlace) {
            throw new IllegalArgumentException(
                    "send and receive overlap by " + shared + " of " + Math.min(sendBytes, receiveBytes) + " bytes: "
                            + (inPlace == 0 ? "they must be the same (in place) or apart"
                                    : inPlace == NEVER_IN_PLACE ? "they must be apart"
                                            : "send must begin " + inPlace
                                                    + " bytes behind receive (in place), or they must be apart"));
        }
    }
}
