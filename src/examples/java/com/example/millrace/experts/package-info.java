/**
 * The exchange of a mixture of experts, as DeepEP does it with NCCL's GIN, on the emulated device: tokens are
 * dispatched to the ranks of their experts, and what the experts made of them is combined where they came from.
 *
 * <p>
 * Every channel has a circular buffer for each pair of ranks. A sender puts tokens into the peer's and adds their
 * number to the peer's tail signal; the receiver uses them and adds their number to the sender's head signal. A
 * channel's context is its number modulo the number of contexts.
 *
 * <p>
 * {@link com.example.millrace.experts.ExpertExchange} is flat, {@link com.example.millrace.experts.HybridExchange}
 * forwards within hosts, {@link com.example.millrace.experts.LowLatencyExchange} has a place for every token.
 */
package com.example.millrace.experts;
