package org.millrace.abi;

import java.lang.foreign.MemorySegment;

/**
 * What a device needs to gather what it receives on a connection: where pieces arrive, and the lists of them.
 *
 * @param bounce    what the lists' source offsets count from
 * @param threshold bytes of a slice of protocol Simple below which it arrives in its slot, without a list
 */
public record UnpackMemory(MemorySegment meta, MemorySegment handle, MemorySegment bounce, long threshold) {
}
