package org.millrace.proxy.unpack;

/**
 * What a connection has for a kernel that unpacks.
 *
 * @param pages        where payloads arrive
 * @param lists        where the kernel looks for them
 * @param firstOrdinal number of the first slice
 */
public record UnpackMemory(BouncePages pages, SliceLists lists, long firstOrdinal) {
}
