package org.millrace.transport;

/**
 * How connections of sends and receives share slots ({@code NCCL_NET_SHARED_BUFFERS}): those of one channel and
 * direction have a pool of their own.
 *
 * @param slotBytes   bytes of a slot: of a chunk
 * @param connections how many share a pool at the most: one for each other rank
 */
public record SharedSlotSizes(int slotBytes, int connections) {
}
